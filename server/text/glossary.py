"""Terms of a glossary: where a text has them, and where its translation has them.

A term is found as whole words, the longest first, from left to right. What the network is not shown is no term.

Positions are in code points.
"""

import copy
import functools
import itertools
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from server.errors import InvalidRequest
from server.text.compounds import find_part, long_words
from server.text.inflection import inflected
from server.text.term_table import LETTER, MAX_FORMS, Term, TermTable, normal, phrase_fault, word_pattern, words_of

MAX_TERMS = 1000  # of a request: half, and lists of a product do not fit; twice that, and reading them takes 10 ms
MAX_WORDS = 20_000  # of its sources: half, and 1000 names of laws do not fit; twice that, and long ones take 16 MiB
# Characters of a glossary that is kept after the call. Half, and 1000 terms of two words do not fit; twice that, and 16
# glossaries of single letters take 0.2 GiB.
_MOST_KEPT = 1 << 15
MAX_NAMES = 16  # half, and a product with departments does not fit; twice that, and each word is looked up in them all
MAX_OF_SENTENCE = 16  # that the search is given; twice that, and each step of the sentence takes as long as of four


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """A term of a sentence.

    Attributes:
        start, end: where the sentence has it.
        may_join: whether its translation may have it as a part of a longer word.
    """

    term: Term
    start: int
    end: int
    may_join: bool = False


@dataclass(frozen=True, slots=True)
class NamedGlossary:
    """A glossary that the server has loaded.

    Attributes:
        source, target: BCP-47 codes of its languages.
        version: changes with its content.
    """

    name: str
    source: str
    target: str
    version: str
    table: TermTable


class Glossary:
    """The terms of a request: its own, and those of the server's glossaries that it names.

    Where several have a source, its own terms win, then the glossary that is named first.

    Args:
        terms: at most `MAX_TERMS`, with forms of 1 to `MAX_CHARACTERS` characters, at most `MAX_FORMS` a side, and
            `MAX_WORDS` words in all sources.
        ignore_case: whether "Printer" is "printer" anywhere, and not at the beginning of a sentence alone.
        names: of the server's glossaries, at most `MAX_NAMES`.

    Attributes:
        names: each of them once.
        named: these glossaries; none before `with_named` has added them.
        language: whose endings targets may have; none before `inflecting` has set it.

    Raises:
        InvalidRequest: there are too many; a term is empty, too long, or no word; or two have the same source.
    """

    def __init__(self, terms: Sequence[Term], *, ignore_case: bool = False, names: Sequence[str] = ()) -> None:
        if len(terms) > MAX_TERMS:
            raise InvalidRequest("glossary.terms", f"must be at most {MAX_TERMS}, not {len(terms)}")
        if len(names) > MAX_NAMES:
            raise InvalidRequest("glossary.names", f"must be at most {MAX_NAMES}, not {len(names)}")
        self._own = TermTable()
        self._ignores_case = ignore_case
        self.names = tuple(dict.fromkeys(names))
        self.named: tuple[NamedGlossary, ...] = ()
        self.language = ""
        first_of: dict[tuple[str, ...], int] = {}
        for index, term in enumerate(terms):
            _check(f"glossary.terms[{index}]", term)
            for source in term.sources:
                words = words_of(source)
                words = tuple(word.casefold() for word in words) if ignore_case else words
                if (other := first_of.setdefault(words, index)) != index:
                    message = f"has a source that glossary.terms[{other}] has already"
                    raise InvalidRequest(f"glossary.terms[{index}]", message)
            self._own.add(term)
            if self._own.num_words > MAX_WORDS:
                message = f"makes {self._own.num_words} words of all sources; a request has room for {MAX_WORDS}"
                raise InvalidRequest(f"glossary.terms[{index}]", message)

    def with_named(self, named: Sequence[NamedGlossary]) -> "Glossary":
        """Returns these terms with those of the server's glossaries after them."""
        glossary = copy.copy(self)
        glossary.named = tuple(named)
        return glossary

    def inflecting(self, language: str) -> "Glossary":
        """Returns these terms for a target language: a target that is given alone has the forms of its endings.

        A target that is the same as a source, which is a name mostly, has none.

        Args:
            language: a BCP-47 code.
        """
        glossary = copy.copy(self)
        glossary.language = language
        return glossary

    def find(self, text: str) -> Iterator[FoundTerm]:
        """Yields the terms of a sentence, in order, apart from each other. Takes time linear in the text."""
        words = list(word_pattern().finditer(text))
        is_folded = self._ignores_case or text.isupper()
        spelt = [normal(word[0]).casefold() if is_folded else normal(word[0]) for word in words]
        first = next((index for index, word in enumerate(spelt) if word[0].isalnum()), -1)
        index = 0
        while index < len(words):
            term, end = self._longest(spelt, index, is_folded)
            if term is None and index == first:  # it may have its capital because the sentence begins
                small = [spelt[index][0].lower() + spelt[index][1:], *spelt[index + 1 :]]
                term, end = self._longest(small, 0, is_folded)
                end += index
            if term is not None:
                own = self._with_forms(term)
                may_join = own is not term and self.language.partition("-")[0] == "de"
                yield FoundTerm(own, words[index].start(), words[end - 1].end(), may_join)
            index = end if term is not None else index + 1

    def _with_forms(self, term: Term) -> Term:
        if len(term.targets) > 1 or term.targets[0] in term.sources:
            return term
        return Term(term.sources, inflected(normal(term.targets[0]), self.language))

    def _longest(self, words: Sequence[str], index: int, is_folded: bool) -> tuple[Term | None, int]:
        tables = (self._own, *(each.table for each in self.named))
        found = (table.longest(words, index, is_folded=is_folded) for table in tables)
        return max(found, key=lambda each: each[1])  # of equals the first


def translate_alone(text: str, found: Sequence[FoundTerm]) -> str | None:
    """Returns the translation of a sentence that is nothing but a term; None if it is anything else.

    It has the capitals that the sentence has beside the term's own.

    Args:
        text: the sentence.
        found: its terms.
    """
    if len(found) != 1 or (found[0].start, found[0].end) != (0, len(text)):
        return None
    term, target = found[0].term, normal(found[0].term.targets[0])
    if normal(text) in map(normal, term.sources):
        return target
    if text.isupper():
        return target.upper()
    return target[:1].upper() + target[1:] if text[:1].isupper() else target


def _check(field: str, term: Term) -> None:
    for name, forms in (("source", term.sources), ("target", term.targets)):
        if len(forms) > MAX_FORMS:
            raise InvalidRequest(f"{field}.{name}_forms", f"must be at most {MAX_FORMS - 1}, not {len(forms) - 1}")
        for number, form in enumerate(forms):
            place = f"{field}.{name}" if number == 0 else f"{field}.{name}_forms[{number - 1}]"
            if fault := phrase_fault(form):
                raise InvalidRequest(place, fault)


def compile_glossary(terms: tuple[Term, ...], ignore_case: bool, names: tuple[str, ...] = ()) -> Glossary | None:
    """Returns a request's glossary compiled, small ones of the last callers at once; None without terms and names."""
    num_characters = sum(len(form) for term in terms for form in (*term.sources, *term.targets))
    return (_compile if num_characters > _MOST_KEPT else _compile_once)(terms, ignore_case, names)


def _compile(terms: tuple[Term, ...], ignore_case: bool, names: tuple[str, ...]) -> Glossary | None:
    return Glossary(terms, ignore_case=ignore_case, names=names) if terms or names else None


_compile_once = functools.lru_cache(maxsize=16)(_compile)


@dataclass(frozen=True, slots=True)
class UsedTerm:
    """A term of a sentence, and where its translation has it; None if that lacks it."""

    found: FoundTerm
    span: tuple[int, int] | None


def locate(found: Sequence[FoundTerm], translation: str, kept: Sequence[str] = ()) -> list[UsedTerm]:
    """Returns where a translation has the terms of its sentence, each place for one of them. Takes linear time.

    It has a term as the glossary writes it, or with a capital first, or in capitals if its own words are. A term that
    may be a part of a longer word is there where this part is.

    Args:
        found: the terms.
        translation: of the sentence.
        kept: parts of it that the network has not written, in which no term counts.
    """
    is_taken = bytearray(len(translation))
    end = 0
    for part in kept:
        start = translation.find(part, end)
        start = translation.find(part) if start < 0 else start
        if part and start >= 0:
            end = start + len(part)
            is_taken[start:end] = b"\1" * len(part)
    is_capitals = "".join(itertools.compress(translation, map(operator.not_, is_taken))).isupper()
    words = long_words(translation) if any(each.may_join for each in found) else []
    spans: dict[Term, Iterator[tuple[int, int]]] = {}
    used = []
    for each in found:
        if each.term not in spans:
            spans[each.term] = _places(each, translation, words, is_capitals)
        span = next((span for span in spans[each.term] if not any(is_taken[slice(*span)])), None)
        if span is not None:
            is_taken[slice(*span)] = b"\1" * (span[1] - span[0])
        used.append(UsedTerm(each, span))
    return used


def _places(
    found: FoundTerm, text: str, long: Sequence[tuple[int, str]], is_capitals: bool
) -> Iterator[tuple[int, int]]:
    """Yields where a text has a term, in order: as a whole word, then, if it may, as a part of a longer word."""
    yield from _occurrences(found.term, text, is_capitals)
    if found.may_join:
        yield from sorted({span for form in map(normal, found.term.targets) for span in find_part(form, long)})


def _occurrences(term: Term, text: str, is_capitals: bool) -> list[tuple[int, int]]:
    """Returns where a text has forms of a term as whole words, in order, the longest first."""
    spans = set()
    for form in map(normal, term.targets):
        begins, ends = re.match(LETTER, form[0]) is not None, re.match(LETTER, form[-1]) is not None
        for written in {form, form[:1].upper() + form[1:], *([form.upper()] if is_capitals else [])}:
            start = text.find(written)
            while start >= 0:
                end = start + len(written)
                is_part = (begins and _is_letter(text[start - 1 : start])) or (ends and _is_letter(text[end : end + 1]))
                if not is_part:
                    spans.add((start, end))
                start = text.find(written, end)
    return sorted(spans, key=lambda span: (span[0], -span[1]))


def _is_letter(character: str) -> bool:
    """Whether a character is of the word beside it; the mark of emphasis is not."""
    return character != "_" and re.match(LETTER, character) is not None
