"""What a network is shown of a translation that somebody gives, as it would have written it itself."""

import re

from server.text.casing import fold
from server.text.masked import PARTED, Masked, Part
from server.text.quotes import is_quote, written
from server.text.typography import clock_time

_BRACKET = re.compile(r"[(\[](?=\w)")
_DOUBLE_QUOTE = '["\u201c\u201d\u201e\u00ab\u00bb]'


def hide(masked: Masked, given: str) -> str:
    """Returns a translation with carriers in the place of its source's parts.

    Args:
        masked: the source, as the network is shown it.
        given: the beginning of a translation of it, or all of it.
    """
    shown = given.removeprefix(masked.leading) if masked.leading else given
    for part in masked.parts:
        match = re.search(_shown(part, masked.language), shown) if part.carrier else None
        if match is not None:
            before, behind = " " * part.touches_left, " " * (part.touches_right and match.end() < len(shown))
            shown = f"{shown[: match.start()]}{before}{part.carrier}{behind}{shown[match.end() :]}"
    if PARTED.search(masked.text) is not None and not PARTED.search(masked.original):
        shown = _BRACKET.sub(r"\g<0> ", shown)
    return fold(shown, masked.casing)


def _shown(part: Part, language: str) -> str:
    """Returns a pattern of what a reader is shown of a part."""
    if is_quote(part.text):
        return _DOUBLE_QUOTE if written(part.text) == '"' else re.escape(part.text)
    text = clock_time(part.text, language)
    before, behind = (r"(?<!\w)" * text[:1].isalnum(), r"(?!\w)" * text[-1:].isalnum())
    return f"{before}{re.escape(text)}{behind}"
