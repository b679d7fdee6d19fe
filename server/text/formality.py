"""How translations speak to their reader: as to a friend or as to a stranger.

There are no rules that rewrite a translation. The search does not write the words of the other way, so that the model
chooses what it would say else.
"""

import enum
import re
from typing import NamedTuple


class Formality(enum.IntEnum):
    """How translations speak to their reader. What begins with PREFER changes nothing where a language has none."""

    LESS = 1
    MORE = 2
    PREFER_LESS = 3
    PREFER_MORE = 4

    @property
    def is_wish(self) -> bool:
        """Whether it changes nothing, rather than being refused, where a language has none."""
        return self in (Formality.PREFER_LESS, Formality.PREFER_MORE)

    @property
    def is_formal(self) -> bool:
        """Whether translations speak as to a stranger."""
        return self in (Formality.MORE, Formality.PREFER_MORE)


class Unwanted(NamedTuple):
    """Words that translations do not have.

    Attributes:
        always: in no sentence.
        to_reader: in no sentence but those that `speaks_of_others`, where they mean somebody else.
    """

    always: tuple[str, ...]
    to_reader: tuple[str, ...]


def _with_capitals(words: str) -> tuple[str, ...]:
    return tuple(form for word in words.split() for form in (word, word.capitalize()))


_FORMAL = ("Sie", "Ihnen", "Ihr", "Ihre", "Ihren", "Ihrem", "Ihrer", "Ihres")
_INFORMAL = _with_capitals(
    "du dich dir dein deine deinen deinem deiner deines euch euer eure euren eurem eurer eures"
    " bist hast habt seid müsst könnt werdet wisst dürft"
)
_OTHERS = re.compile(r"\b(?:they|them|their|theirs|themselves|she|her|hers|herself|it|its|itself)\b", re.IGNORECASE)
_READER = re.compile(r"\b(?:you|your|yours|yourself|yourselves)\b", re.IGNORECASE)


def unwanted_words(formality: Formality, source: str, target: str) -> Unwanted | None:
    """Returns the words that a translation does not have; None if this cannot be told from these languages.

    Args:
        formality: that is asked for.
        source, target: BCP-47 codes.
    """
    if not has_formality(source, target):
        return None
    return Unwanted(_INFORMAL, ("ihr",)) if formality.is_formal else Unwanted((), _FORMAL)


def has_formality(source: str, target: str) -> bool:
    """Returns whether translations from a language into another can be asked for a formality."""
    return (source.partition("-")[0], target.partition("-")[0]) == ("en", "de")


def speaks_of_others(text: str) -> bool:
    """Returns whether a sentence of English speaks of others and not to its reader, so that German may need "Sie"."""
    return bool(_OTHERS.search(text)) and not _READER.search(text)
