"""Sentences in capitals and titles: what a network is shown of them, and their translations.

Of capitals a vocabulary has hardly more than single letters, and training text has few. So a sentence in capitals is
shown in small letters, and its translation is raised. In a Title Like This a network takes words for names and leaves
them as they are: 300 sentences written so lost 7.5 points of chrF from English and 3.2 from German, and in small
letters 0.2 and 0.6 (en-de-small 2.3 and de-en-small).

Source: `case_markup` in OpenNMT's Tokenizer, at the scale of a sentence.
"""

import enum
import re

_LEAST_CAPITALS = 5  # of a single word that is folded: shorter ones are mostly names, such as NATO
# Words of a notice that is shown with a capital as sentences have it, which gains 1.0 point of chrF from English and
# loses 0.4 from German. Half of it, and "DO NOT ENTER" is not; twice that, and longer ones lose 1.0 from German.
_MOST_OF_NOTICE = 3
# Words of a title. Half of it, and names such as "Bill Gates" are titles; twice that, and most titles are none.
_LEAST_OF_TITLE = 4
_LEAST_LETTERS = 4  # of a word that is known again in a translation: shorter ones are words of several languages
_WORD = re.compile(r"[^\W\d_]+")
_WORDS = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_PLAIN_WORD = re.compile(" [a-z]{4}")  # neither capitals nor titles have one
_SMALL = frozenset(
    ["a", "an", "the", "and", "or", "nor", "but", "of", "to", "in", "on", "at", "by", "for", "from", "with"]
)


class Casing(enum.Enum):
    """How a sentence is written."""

    PLAIN = "plain"
    CAPITALS = "capitals"
    TITLE = "title"


def casing_of(text: str) -> Casing:
    """Returns how a sentence is written. Scripts without capitals are always plain.

    Args:
        text: a sentence.
    """
    if _PLAIN_WORD.search(text):
        return Casing.PLAIN
    words = _WORD.findall(text)
    if not words or len(text.lower()) != len(text):  # few letters become several
        return Casing.PLAIN
    if all(letter.isupper() or letter == "ß" for word in words for letter in word):
        long = [word for word in words if len(word) > 1]
        return Casing.CAPITALS if len(long) > 1 or any(len(word) >= _LEAST_CAPITALS for word in long) else Casing.PLAIN
    is_title = sum(word.istitle() and len(word) > 1 for word in words) >= _LEAST_OF_TITLE  # no initials, as of a name
    return Casing.TITLE if is_title and all(word.istitle() or word in _SMALL for word in words) else Casing.PLAIN


def fold(text: str, casing: Casing) -> str:
    """Returns a sentence as a network is shown it: in small letters, unless it is plain.

    Args:
        text: a sentence.
        casing: how it is written.
    """
    if casing is Casing.PLAIN:
        return text
    small = text.lower()
    word = _WORD.search(small)
    if casing is Casing.TITLE or word is None:
        return small
    if len(_WORD.findall(small)) > _MOST_OF_NOTICE and not small.startswith(": ", word.end()):
        return small
    return small[: word.start()] + text[word.start()] + small[word.start() + 1 :]


def raise_again(source: str, translation: str, casing: Casing, language: str) -> str:
    """Returns a translation written as its source is, in the way of its language.

    English alone writes titles with capitals. Elsewhere a title is written as a sentence, with the names of its source.

    Args:
        source: a sentence.
        translation: of what `fold` returns for it.
        casing: how the source is written.
        language: BCP-47 code of the translation's language.
    """
    if casing is Casing.CAPITALS:
        return translation.upper()
    if casing is Casing.PLAIN:
        return translation
    if not source.endswith("."):  # as titles seldom do
        translation = translation.removesuffix(".")
    if language.partition("-")[0] == "en":
        return _first_raised(_WORDS.sub(lambda word: word[0] if word[0] in _SMALL else _raised(word[0]), translation))
    names = {word.lower(): word for word in _WORD.findall(source) if len(word) >= _LEAST_LETTERS}
    return _first_raised(_WORD.sub(lambda word: names.get(word[0], word[0]), translation))


def begun(source: str, translation: str) -> str:
    """Returns a translation that begins with a capital if its source does, as headings and labels do.

    Networks begin what is no sentence with a small letter. A word such as "iPhone" stays.
    """
    word = _WORD.match(translation)
    if word is None or not word[0].islower() or not source[:1].isupper():
        return translation
    return _raised(translation)


def _first_raised(text: str) -> str:
    return _WORD.sub(lambda word: _raised(word[0]), text, count=1)


def _raised(word: str) -> str:
    return word[0].upper() + word[1:]
