"""What a network has learned to read in the place of a text's own writing, as its manifest says."""

from dataclasses import dataclass

FIRST_PLACEHOLDER, MAX_PLACEHOLDERS = 0xE000, 6400  # private-use characters of the basic plane


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """What a network has learned to read in the place of a text's own writing: see `server.text.masking`.

    Attributes:
        num_placeholders: symbols, U+E000 and those after it, that it copies in the place of addresses,
            codes and emoji; 0 for none.
        folds_capitals: whether it is shown ALL CAPS in small letters, and its translation of them is raised.
    """

    num_placeholders: int = 0
    folds_capitals: bool = False
