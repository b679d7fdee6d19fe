"""Texts into sentences and back. Its face: `Splitter`, `SplitText`."""
