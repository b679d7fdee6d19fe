"""The signs before numbers: "No. 3" in English, "Nr. 3" in German.

Networks read "No." as a refusal. So German ones are shown "Nr. 3", or nothing but the number behind a word, as in
"question No. 3", of which "question Nr. 3" makes "Fragen. 3".
"""

import re
from collections import defaultdict
from collections.abc import Iterator

_ENGLISH = re.compile(r"\bNo\.(?=\s?\d)")
_ENGLISH_BEHIND = re.compile(r"(?<=[^\W\d_]{3} )No\.\s?(\d++)")
_SIGNED_OR_BARE = re.compile(rf"{_ENGLISH_BEHIND.pattern}|(?<![\w.,])(\d++)(?:st|nd|rd|th)?+(?!\w|[.,]\d)")
_NUMBER = re.compile(  # what stands behind a noun has a sign, and what stands before one counts
    r"(?P<noun>\b[A-ZÄÖÜ]\w*+\s)?(?P<sign>Nr\.\s?)?(?<![\w.,])(?P<number>\d++)"
    r"(?!\w|[.,]\d)(?P<counting>(?=\s[A-ZÄÖÜ]))?"
)
_GERMAN = re.compile(r"\bNr\.(?=\s?\d)")


def number_sign(text: str, language: str) -> str:
    """Returns a sentence as a network is shown it that translates it into a language.

    Args:
        text: a sentence.
        language: BCP-47 code of the translation's language.
    """
    if "No." not in text or not language.startswith("de"):
        return text
    return _ENGLISH.sub("Nr.", _ENGLISH_BEHIND.sub(r"\1", text))


def restore_number_signs(source: str, translation: str, language: str) -> str:
    """Returns a translation with the signs of its source, as its language writes them.

    Of equal numbers, those get the sign that stand behind a noun and before none, else those of the source's order. If
    the translation has fewer, the first without a sign are taken to be words there.

    Args:
        source: a sentence, as it was written.
        translation: of what `number_sign` returns for it.
        language: BCP-47 code of the translation's language.
    """
    if language.startswith("en"):
        return _GERMAN.sub("No.", translation) if "Nr." in source else translation
    if "No." not in source or not language.startswith("de"):
        return translation
    for place in sorted(_places_of_signs(source, translation), reverse=True):
        translation = f"{translation[:place]}Nr. {translation[place:]}"
    return translation


def _places_of_signs(source: str, translation: str) -> Iterator[int]:
    """Yields where signs are missing in a translation, in no order."""
    signs: dict[str, list[bool]] = defaultdict(list)  # by the number, whether each place of it lost one
    for found in _SIGNED_OR_BARE.finditer(source):
        signs[found[1] or found[2]].append(found[1] is not None)
    places: dict[str, list[re.Match[str]]] = defaultdict(list)
    for found in _NUMBER.finditer(translation):
        places[found["number"]].append(found)
    for number, own in signs.items():
        there = places[number]
        while len(own) > len(there) and False in own:
            own.remove(False)
        are_signed = [*own, *[False] * len(there)]
        ranked = sorted(zip(there, are_signed, strict=False), key=_fits, reverse=True)
        yield from (found.start("number") for found, _ in ranked[: sum(own)] if not found["sign"])


def _fits(place: "tuple[re.Match[str], bool]") -> tuple[bool, bool]:
    """Ranks a place of a number in a translation; the second value is the sign of the same place in the source."""
    found, is_signed = place
    return found["noun"] is not None and found["counting"] is None, is_signed
