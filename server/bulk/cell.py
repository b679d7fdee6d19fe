"""What a row has to be translated, or what has become of it."""

from typing import NamedTuple


class Cell(NamedTuple):
    """A text, or why there is none.

    Attributes:
        text: None if the row has none, or could not be translated.
        error: empty if there is a text.
    """

    text: str | None
    error: str = ""


def encoded(text: str) -> Cell:
    """Returns a cell with a text, or the error of one that has half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return Cell(None, "the text is no valid Unicode")
    return Cell(text)


def decoded(text: bytes) -> Cell:
    """Returns a cell with a text, or the error of one that is no UTF-8."""
    try:
        return Cell(text.decode())
    except UnicodeDecodeError:
        return Cell(None, "the text is no UTF-8")
