"""Documents with markup: which of their text is translated, and where its tags stand in the translation."""
