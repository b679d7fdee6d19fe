"""Choosing tokens: pure Python, no I/O. Its face: `BeamSearch`, `DecodingOptions`, `Result`."""
