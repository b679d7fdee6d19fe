"""Terms of a glossary: where a text has them, and where its translation has them.

A term is found as whole words, the longest first, from left to right. What the network is not shown is no term.

Positions are in code points.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from server.errors import InvalidRequest

MAX_TERMS = 1000  # of a request: half, and lists of a product do not fit; twice that, and reading them takes 10 ms
MAX_CHARACTERS = 200  # of a phrase; half, and names of laws do not fit; twice that, and four of them fill a sentence
MAX_FORMS = 32  # of a source or a target: German adjectives have fewer, and so have Finnish nouns in common use
MAX_OF_SENTENCE = 16  # that the search is given; twice that, and each step of the sentence takes as long as of four
_BY_CHARACTER = (  # scripts that part no words by blanks: each letter is one
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_LETTER = rf"[^\W{_BY_CHARACTER}]"
_WORD = re.compile(rf"[{_BY_CHARACTER}]|{_LETTER}+(?:-{_LETTER}+|['\u2019]t\b)*|[^\w\s]")
_END = 0  # key of a node's term; words are strings


@dataclass(frozen=True, slots=True)
class Term:
    """An entry of a glossary: what a text may have, and what its translation must have then.

    Attributes:
        sources: the word or phrase, and its other forms.
        targets: the same of the translation, any of which will do.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """A term of a sentence.

    Attributes:
        start, end: where the sentence has it.
    """

    term: Term
    start: int
    end: int


class Glossary:
    """Terms, compiled.

    Args:
        terms: at most `MAX_TERMS`, with forms of 1 to `MAX_CHARACTERS` characters, at most `MAX_FORMS` a side.
        ignore_case: whether "Printer" is "printer" anywhere, and not at the beginning of a sentence alone.

    Raises:
        InvalidRequest: there are too many; one is empty, too long, or no word; or two have the same source.
    """

    def __init__(self, terms: Sequence[Term], *, ignore_case: bool = False) -> None:
        if len(terms) > MAX_TERMS:
            raise InvalidRequest("glossary.terms", f"must be at most {MAX_TERMS}, not {len(terms)}")
        self._ignores_case = ignore_case
        self._exact: dict[Any, Any] = {}  # tries of words
        self._folded: dict[Any, Any] = {}
        first_of: dict[tuple[str, ...], int] = {}
        for index, term in enumerate(terms):
            _check(f"glossary.terms[{index}]", term)
            for source in term.sources:
                words = _words(source)
                folded = tuple(word.casefold() for word in words)
                if (other := first_of.setdefault(folded if ignore_case else words, index)) != index:
                    message = f"has a source that glossary.terms[{other}] has already"
                    raise InvalidRequest(f"glossary.terms[{index}]", message)
                _add(self._exact, words, term)
                _add(self._folded, folded, term)

    def find(self, text: str) -> Iterator[FoundTerm]:
        """Yields the terms of a sentence, in order, apart from each other. Takes time linear in the text."""
        words = list(_WORD.finditer(text))
        is_folded = self._ignores_case or text.isupper()
        spelt = [word[0].casefold() if is_folded else word[0] for word in words]
        first = next((index for index, word in enumerate(spelt) if word[0].isalnum()), -1)
        root = self._folded if is_folded else self._exact
        index = 0
        while index < len(words):
            term, end = _longest(root, spelt, index)
            if term is None and index == first:  # it may have its capital because the sentence begins
                term, end = _longest(root, [spelt[index][0].lower() + spelt[index][1:], *spelt[index + 1 :]], 0)
                end += index
            if term is not None:
                yield FoundTerm(term, words[index].start(), words[end - 1].end())
            index = end if term is not None else index + 1


def _check(field: str, term: Term) -> None:
    for name, forms in (("source", term.sources), ("target", term.targets)):
        if len(forms) > MAX_FORMS:
            raise InvalidRequest(f"{field}.{name}_forms", f"must be at most {MAX_FORMS - 1}, not {len(forms) - 1}")
        for number, form in enumerate(forms):
            place = f"{field}.{name}" if number == 0 else f"{field}.{name}_forms[{number - 1}]"
            if not form.strip() or len(form) > MAX_CHARACTERS:
                message = f"must have 1 to {MAX_CHARACTERS} characters, not all white space, not {len(form)}"
                raise InvalidRequest(place, message)
            if not form.isprintable():
                raise InvalidRequest(place, "must have no control characters and no line breaks")


def _words(text: str) -> tuple[str, ...]:
    return tuple(match[0] for match in _WORD.finditer(text))


def _add(root: dict[Any, Any], words: Sequence[str], term: Term) -> None:
    node = root
    for word in words:
        node = node.setdefault(word, {})
    node.setdefault(_END, term)


def _longest(root: dict[Any, Any], words: Sequence[str], index: int) -> tuple[Term | None, int]:
    """Returns the longest term that begins with a word, and the index behind its last one."""
    found, end, node = None, index, root
    for place in range(index, len(words)):
        if words[place] not in node:
            break
        node = node[words[place]]
        if _END in node:
            found, end = node[_END], place + 1
    return found, end


@functools.lru_cache(maxsize=64)
def compile_glossary(terms: tuple[Term, ...], ignore_case: bool) -> Glossary | None:
    """Returns terms compiled, those of the last callers at once; None without any."""
    return Glossary(terms, ignore_case=ignore_case) if terms else None


@dataclass(frozen=True, slots=True)
class UsedTerm:
    """A term of a sentence, and where its translation has it; None if that lacks it."""

    found: FoundTerm
    span: tuple[int, int] | None


def locate(found: Sequence[FoundTerm], translation: str) -> list[UsedTerm]:
    """Returns where a translation has the terms of its sentence, each occurrence for one of them.

    It has a term as the glossary writes it, or with a capital first, or in capitals if it has nothing else.
    """
    taken: set[tuple[int, int]] = set()
    used = []
    for each in found:
        spans = (span for form in each.term.targets for span in _occurrences(form, translation) if span not in taken)
        span = min(spans, default=None)
        if span is not None:
            taken.add(span)
        used.append(UsedTerm(each, span))
    return used


def _occurrences(form: str, text: str) -> Iterator[tuple[int, int]]:
    begins, ends = (re.match(_LETTER, form[place]) for place in (0, -1))
    for written in {form, form[:1].upper() + form[1:], *([form.upper()] if text.isupper() else [])}:
        start = text.find(written)
        while start >= 0:
            end = start + len(written)
            is_part = (begins and text[start - 1 : start].isalnum()) or (ends and text[end : end + 1].isalnum())
            if not is_part:
                yield start, end
            start = text.find(written, start + 1)
