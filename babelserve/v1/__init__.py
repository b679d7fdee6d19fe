"""The wire contract, `translation.proto`, and the code generated from it (`make protos`; never edited by hand)."""
