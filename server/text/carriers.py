"""Carriers in the text that a network writes, and characters that must never leave.

A carrier is a private character, which the network has learned as a symbol, or a code such as "%1". Characters that
mean nothing to a reader never leave: U+FFFD, which stands for bytes that are no text, and private ones.
"""

import functools
import re
from collections.abc import Callable, Collection, Sequence

_STRAY = re.compile("[\ufffd\ue000-\uf8ff]")
_RARE_LETTER = "\U00010840"  # of Imperial Aramaic; typography is to see a letter beside an apostrophe
_OBJECT = "\ufffc"  # no letter, because a source's words are not looked at beside its parts
_IN_WORD = "(?<=[0-9A-Za-z])(?=[0-9A-Za-z])"  # not of any script: an address may touch Chinese
_NOTHING = re.compile(r"\uffff(?!)")  # a search for one character, which hardly a text has, is quick


def clean(translation: str) -> str:
    """Returns a translation without characters that mean nothing to a reader: U+FFFD, and private ones."""
    return _STRAY.sub("", translation)


@functools.lru_cache(maxsize=256)
def carrier_pattern(carriers: tuple[str, ...]) -> "re.Pattern[str]":
    """Returns a pattern of carriers, codes as whole words; of none it finds nothing."""
    if not carriers:
        return _NOTHING
    symbols = [each for each in carriers if _STRAY.fullmatch(each)]
    codes = [each for each in carriers if each not in symbols]
    found = [f"[{''.join(symbols)}]"] if symbols else []
    return re.compile("|".join(found + [rf"(?<!\w){re.escape(each)}(?!\w)" for each in codes]))


def sure_end(text: str, carriers: Sequence[str]) -> int:
    """Returns where what may be the beginning of a code begins, or a whole one that may go on; else the text's end."""
    codes = [each.casefold() for each in carriers if not _STRAY.fullmatch(each)]
    end = text.casefold()[-max(map(len, codes), default=0) :] if codes else ""
    begins = (index for index in range(len(end)) if any(code.startswith(end[index:]) for code in codes))
    return len(text) - len(end) + next(begins, len(end))


def changed_around(parts: Collection[str], source: str, text: str, change: Callable[[str, str], str]) -> str:
    """Returns a changed text, in which some parts of it stay as they are.

    Args:
        parts: that stay, wherever they stand in the text, but not as a piece of a word or number.
        source: of the text; it has parts too.
        text: a translation with its parts.
        change: takes the source without the parts, and the text with a rare letter for each, which it leaves there.
    """
    if not parts:
        return change(source, text)
    either = "|".join(map(re.escape, sorted([*parts, _RARE_LETTER], key=len, reverse=True)))
    pattern = re.compile(f"(?!{_IN_WORD})(?:{either})(?!{_IN_WORD})")
    found = iter(pattern.findall(text))
    changed = change(pattern.sub(_OBJECT, source), pattern.sub(_RARE_LETTER, text))
    return re.sub(_RARE_LETTER, lambda _: next(found), changed)
