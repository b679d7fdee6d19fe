"""Words of German that have a noun as one of their parts, as "Kanalisationssystem" has "Kanalisation".

There is no dictionary. So what stands beside the noun must have as many letters as endings and prefixes seldom have.
"""

import re
from collections.abc import Iterable, Iterator

from server.decoding.terms import LEAST_LETTERS

_WORD = re.compile(r"(?<!\w)[A-ZÄÖÜ][a-zäöüß]+(?!\w)")
_NO_NOUN_BEFORE = re.compile(r"(?:gegen|hinter|nach|nieder|unter|über|wider|zurück|zusammen)\Z")
_NO_NOUN_BEHIND = re.compile(r"(?:s|n|en)?(?:haft|heit|innen|isch|ismus|keit|lich|los|schaft|tum)")


def long_words(text: str) -> list[tuple[int, str]]:
    """Returns the words of a text that may have nouns as their parts: where they begin, and in small letters."""
    return [(word.start(), word[0].lower()) for word in _WORD.finditer(text) if len(word[0]) >= 2 * LEAST_LETTERS]


def find_part(noun: str, words: Iterable[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """Yields where longer words have a noun: the start and the end of the noun alone, once for each word.

    Args:
        noun: a single word with a capital and at least `LEAST_LETTERS` letters; any other is a part of no word.
        words: of a text, from `long_words`.
    """
    if len(noun) < LEAST_LETTERS or not _WORD.fullmatch(noun):
        return
    part = noun.lower()
    for start, word in words:
        if part in word:
            before, _, behind = word.partition(part)
            if _is_compound(before, behind):
                yield start + len(before), start + len(before) + len(part)


def begins_of_compounds(forms: Iterable[str]) -> list[str]:
    """Returns what longer words may begin with to have one of the forms of a noun, of which the first is as listed."""
    nouns = [form for form in forms if len(form) >= LEAST_LETTERS and _WORD.fullmatch(form)]
    return [*nouns, f"{nouns[0]}s"] if nouns else []


def _is_compound(before: str, behind: str) -> bool:
    fits_before = not before or (len(before) >= LEAST_LETTERS and not _NO_NOUN_BEFORE.match(before))
    fits_behind = not behind or (len(behind) >= LEAST_LETTERS and not _NO_NOUN_BEHIND.match(behind))
    return bool(before or behind) and fits_before and fits_behind
