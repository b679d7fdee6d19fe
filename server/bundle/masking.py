"""What a network can read of a text's own writing, and what it copies in place of the rest, as its manifest says."""

import functools
from dataclasses import dataclass

FIRST_PLACEHOLDER, MAX_PLACEHOLDERS = 0xE000, 6400  # private-use characters of the basic plane
MAX_CODES, MAX_CODE_CHARACTERS = 4, 8
_CODE_DIGITS = range(1, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """What a network is shown in the place of a text's own writing: see `server.text.masking`.

    Attributes:
        num_placeholders: symbols, U+E000 and those after it, that it has learned to copy; 0 for none.
        folds_capitals: whether it is shown ALL CAPS in small letters, and its translation of them is raised.
        codes: short texts that it copies, best first, with "{}" in the place of a digit, such as "%{}".
        unknown_characters: that its vocabulary has, but that it does not return when they stand in a sentence.
    """

    num_placeholders: int = 0
    folds_capitals: bool = False
    codes: tuple[str, ...] = ()
    unknown_characters: str = ""

    @property
    def carriers(self) -> tuple[tuple[str, ...], ...]:
        """What stands in the place of parts, a tuple for each attempt: symbols, then each code with 1 to 9."""
        return _carriers(self.num_placeholders, self.codes)


@functools.cache
def _carriers(num_placeholders: int, texts: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    symbols = tuple(chr(FIRST_PLACEHOLDER + index) for index in range(num_placeholders))
    codes = [tuple(text.replace("{}", str(digit)) for digit in _CODE_DIGITS) for text in texts]
    return tuple(filter(None, (symbols, *codes)))
