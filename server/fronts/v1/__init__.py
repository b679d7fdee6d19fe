"""Messages of other vendors in Python: generated from `protos/` by `make protos`, never edited by hand."""
