"""Terms by their words, so that the longest one at a place of a text is found at once."""

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_CHARACTERS = 200  # of a phrase; half, and names of laws do not fit; twice that, and four of them fill a sentence
MAX_FORMS = 32  # of a source or a target: German adjectives have fewer, and so have Finnish nouns in common use
BY_CHARACTER = (  # scripts that part no words by blanks: each letter is one
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_NO_CATEGORIES = frozenset(("Cc", "Cs", "Co", "Cn", "Zl", "Zp"))
_NO_TEXT = frozenset("\u2581\ufffd\u200b\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_MARKS = (  # accents, points and vowel signs, which \w does not take, and the letters between them
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711-\u07f3\u0816-\u082d\u0859-\u085b\u0898-\u08e1\u08e3-\u0963"
    "\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3\u0afa-\u0b63\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d"
    "\u0d57-\u0d63\u0d81-\u0df3"
)
LETTER = rf"(?:[^\W{BY_CHARACTER}]|[{_MARKS}])"


@dataclass(frozen=True, slots=True)
class Term:
    """An entry of a glossary: what a text may have, and what its translation must have then.

    Attributes:
        sources: the word or phrase, and its other forms.
        targets: the same of the translation, any of which will do. One alone may have endings; one that is there twice
            is meant as it stands.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def packed(self) -> str:
        """Returns the term as one text."""
        return "\n".join(("\t".join(self.sources), "\t".join(self.targets)))

    @staticmethod
    def unpacked(text: str) -> "Term":
        """Returns the term that `packed` has made a text of."""
        sources, targets = text.split("\n")
        return Term(tuple(sources.split("\t")), tuple(targets.split("\t")))


class TermTable:
    """Terms, compiled. Of two with the same source, it has the first.

    The keys are phrases and their beginnings, such as "hard" and "hard disk", with one blank between words. The values
    are terms as texts, empty for mere beginnings. A tree of dicts, or terms as objects, would take twice the memory,
    and Python's collector would keep the event loop waiting while it walks through them.

    Args:
        terms: any number, with forms without a fault.

    Attributes:
        num_terms: how many there are.
        num_words: of all sources; as many keys at most.
    """

    def __init__(self, terms: Iterable[Term] = ()) -> None:
        self._exact: dict[str, str] = {}
        self._folded: dict[str, str] = {}
        self.num_terms = 0
        self.num_words = 0
        for term in terms:
            self.add(term)

    def add(self, term: Term) -> None:
        """Adds a term, before anything is looked up."""
        packed = term.packed()
        self.num_terms += 1
        for source in term.sources:
            words = words_of(source)
            folded = tuple(word.casefold() for word in words)
            keys = _keys(words)
            _add(self._exact, keys, packed)
            _add(self._folded, keys if folded == words else _keys(folded), packed)
            self.num_words += len(words)

    def longest(self, words: Sequence[str], index: int, *, is_folded: bool) -> tuple[Term | None, int]:
        """Returns the longest term that begins with a word, and the index behind its last one.

        Args:
            words: of a sentence; folded if `is_folded`.
            index: of the word.
            is_folded: whether case does not matter.
        """
        table = self._folded if is_folded else self._exact
        found, end, key = "", index, words[index]
        for place in range(index + 1, len(words) + 1):
            packed = table.get(key)
            if packed is None:
                break
            if packed:
                found, end = packed, place
            if place < len(words):
                key += " " + words[place]
        return Term.unpacked(found) if found else None, end


def words_of(text: str) -> tuple[str, ...]:
    """Returns the words of a text; a mark is one, and so is a letter of a script without blanks."""
    return tuple(map(normal, word_pattern().findall(text)))


@functools.cache
def word_pattern() -> "re.Pattern[str]":
    """Returns the pattern of a word, compiled when the first glossary comes."""
    return re.compile(rf"[{BY_CHARACTER}]|{LETTER}+(?:[-\u2011]{LETTER}+|['\u2019]t\b)*|[^\w\s]")


def normal(text: str) -> str:
    """Returns a word or phrase as all that differ in encoding and white space alone are written."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text).replace("\u2011", "-")
    return " ".join(composed.split())


def phrase_fault(text: str) -> str:
    """Returns what is wrong with a form of a term; empty for nothing."""
    if not text.strip() or len(text) > MAX_CHARACTERS:
        return f"must have 1 to {MAX_CHARACTERS} characters, not all white space, not {len(text)}"
    is_odd = not text.isprintable()  # few texts are odd, and to look each character up takes ten times as long
    if not _NO_TEXT.isdisjoint(text) or (is_odd and any(unicodedata.category(each) in _NO_CATEGORIES for each in text)):
        return "must have no control characters, no line breaks and no characters that mean nothing"
    return ""


def _keys(words: Sequence[str]) -> list[str]:
    return list(itertools.accumulate(words, "{} {}".format))


def _add(table: dict[str, str], keys: Sequence[str], packed: str) -> None:
    for key in keys[:-1]:
        table.setdefault(key, "")
    if not table.get(keys[-1]):
        table[keys[-1]] = packed
