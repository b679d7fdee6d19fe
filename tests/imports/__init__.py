"""Tiny models of the real `transformers` classes, as the hub lays them out, and what `generate` makes of sentences.

`models/` and `expected/` are committed and read without `transformers`; README.md says how they were made.
"""
