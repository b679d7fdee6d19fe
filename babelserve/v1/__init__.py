"""The wire contract in Python: generated from `protos/` by `make protos`, never edited by hand."""
