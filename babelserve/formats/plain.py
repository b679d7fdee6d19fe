r"""Plain text: each line is a text of its own; line breaks and the blanks around a line stay as they are."""

import re

from babelserve.formats.document import PLAIN, Document, Standing, Unit, decoded, has_letters, one_text

_LINE = re.compile(r"[^\s](?:[^\r\n]*[^\s])?")
_BREAKS = re.compile(r"[\r\n]+")


def read_text(data: bytes) -> Document:
    """Reads text in UTF-8. Raises BadFile: it is not UTF-8."""
    text = decoded(data)
    start = len(text) - len(text.removeprefix("\ufeff"))
    lines = (found for found in _LINE.finditer(text, start) if has_letters(found[0]))
    return one_text(PLAIN, text, [Unit(found[0], *found.span(), _in_one_line) for found in lines])


def _in_one_line(translation: str, _standing: Standing) -> str:
    """A model may make a line break of its own; it must not shift the lines that follow."""
    return _BREAKS.sub(" ", translation)
