"""The signs before numbers: "No. 3" in English, "Nr. 3" in German.

Networks read "No." as a refusal. So German ones are shown "Nr. 3", or nothing but the number behind a word, as in
"question No. 3", of which "question Nr. 3" makes "Fragen. 3".
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

_ENGLISH = re.compile(r"\bNo\.(?=\s?\d)")
_ENGLISH_BEHIND = re.compile(r"(?<=[^\W\d_]{3} )No\.\s?(\d++)")
_SIGNED = re.compile(r"\bNo\.\s?(\d++)(?!\w|[.,]\d)")
_NUMBER = re.compile(  # what stands behind a noun may have lost its sign, and what stands before one counts
    r"(?P<noun>\b[A-ZÄÖÜ]\w*+(?<![Nn]ummer)(?<![Nn]ummern)(?<!Nr)\s)?"
    r"(?P<sign>(?:(?i:nummern?|nr\b\.?:?)|\bNo\.)\s?)?(?<![\w.,])(?P<number>\d++)"
    r"(?!\w|[.,]\d|\.\s)(?P<counting>(?=\s[A-ZÄÖÜ]))?"
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

    If several equal numbers may have lost one, those get it that stand behind a noun and before none, and none if that
    does not tell them apart.

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
    places: dict[str, list[re.Match[str]]] = defaultdict(list)
    for found in _NUMBER.finditer(translation):
        places[found["number"]].append(found)
    signs = Counter(_SIGNED.findall(source))
    for number in set(_ENGLISH_BEHIND.findall(source)):
        bare = [found for found in places[number] if found["sign"] is None]
        num_missing = signs[number] - (len(places[number]) - len(bare))
        if len(bare) > num_missing:
            bare = [found for found in bare if found["noun"] is not None and found["counting"] is None]
        if len(bare) <= num_missing:
            yield from (found.start("number") for found in bare)
