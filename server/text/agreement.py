"""Words before a term that agree with it: its article, and the adjectives between the two.

The network may have written them for another noun, which the term has replaced. This finds what else may stand there:
the forms of the same words before a noun of the term's gender, in each case in which they may stand now. It does not
say which of them is right, because that depends on the rest of the sentence.

The gender of a noun is guessed by its end. Only German has rules.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from server.text import german
from server.text.inflection import head_of

_GENDERS = "mfnp"  # masculine, feminine, neuter, and the plural of all three
_CASES = "nadg"  # nominative, accusative, dative, genitive
# Adjectives between an article and its noun. Half, and articles before two adjectives stay as they are; twice that, and
# articles of other nouns are taken for those of the term.
_MOST_ADJECTIVES = 2
_LONGER_WORD = re.compile(r"[\w-]")
_PLURAL = re.compile(r"(?:(?<![isu])s|men|children|people|data|media|criteria|feet|teeth|mice)\Z", re.IGNORECASE)

# An article, or what stands in its place: for each case and gender, in this order, its form, and how adjectives behind
# it end. The form is empty if there is none.
_Determiner = list[tuple[str, str]]


class _Before(NamedTuple):
    """What stands before a noun.

    Attributes:
        words: as they are.
        preposition: one that may be joined with an article; empty without any.
        article: in small letters.
        adjectives: words between it and the noun.
        last: the word before all of these, or the preposition; empty without any.
    """

    words: list[str]
    preposition: str
    article: str
    adjectives: list[str]
    last: str


class Grammar:
    """How the words before a noun agree with it, in one language whose nouns have capitals.

    Args:
        nouns: how nouns of each gender end, parted by blanks; under an empty gender, ends of nouns of any gender.
        determiners: stems, their ends, and the ends of adjectives behind them; see `server.text.german`.
        prepositions: each with the first letters of its cases.
        joined: prepositions and articles that are written as one word.
        invariable: genders whose nouns have one form in the singular.
    """

    def __init__(
        self,
        nouns: Mapping[str, str],
        determiners: Sequence[tuple[str, str, str]],
        prepositions: Mapping[str, str],
        joined: Mapping[str, str],
        invariable: str,
    ) -> None:
        self._cases = {word: cases for words, cases in prepositions.items() for word in words.split()}
        self._invariable = invariable
        self._genders = {end: gender for gender, ends in nouns.items() for end in ends.split()}
        self._joined = joined
        self._parted = {word: parts.split() for parts, word in joined.items()}
        self._joining = {preposition for preposition, _ in self._parted.values()}
        self._places: dict[str, list[tuple[_Determiner, int]]] = {}  # of each form
        for stems, ends, ends_of_adjectives in determiners:
            for stem in stems.split():
                forms = [f"{stem}{end}".replace("0", "") if end != "-" else "" for end in ends.split()]
                own = list(zip(forms, ends_of_adjectives.split(), strict=True))
                for place, form in enumerate(forms):
                    self._places.setdefault(form, []).append((own, place))
        all_ends = "|".join({end for *_, ends in determiners for end in ends.split()})
        self._adjective = re.compile(rf"([^\W\d]{{2,}}?)({all_ends})")

    def gender(self, noun: str) -> str:
        """Returns the gender of a noun, by its longest end that is listed; empty if it is not known."""
        word = noun.lower() if noun[:1].isupper() else ""
        return next((self._genders[word[at:]] for at in range(len(word)) if word[at:] in self._genders), "")

    def agreeing(self, text: str, span: tuple[int, int], forms: Sequence[str], *, is_singular: bool) -> list[str]:
        """Returns what a text may be for the words before a term to agree with it, each once.

        Nothing is returned if they agree, if there is no article, or if gender and number are not known, as of a longer
        word that has the term.

        Args:
            text: a translation.
            span: where it has the term.
            forms: that the term may have, as the glossary has it first.
            is_singular: whether the term stands for one thing.
        """
        begin, end = span
        now = text[begin:end]
        base = forms[0] if is_singular else now
        head = head_of(base.split(" "))
        gender = self.gender(base.split(" ")[head]) if head >= 0 else ""
        noun_begin = begin + sum(len(word) + 1 for word in now.split(" ")[: max(0, head)])
        before = self._before(text[:noun_begin])
        is_part = _LONGER_WORD.match(text, end) is not None
        if before is None or is_part or not gender or not (is_singular or gender == "p"):
            return []
        found: dict[str, None] = {}
        for new in self._written(before, gender):
            for form in dict.fromkeys([now, *forms]):
                *own, noun = form.split(" ")[: head + 1]
                is_other = gender in self._invariable and noun != base.split(" ")[head]
                if not is_other and new[len(new) - len(own) :] == own:
                    found[" ".join([*new[: len(new) - len(own)], form])] = None
        first = noun_begin - len(" ".join([*before.words, ""]))
        texts = [text[:first] + each + text[end:] for each in found]
        return [] if text in texts else texts

    def _before(self, text: str) -> _Before | None:
        """Returns what a text has before a noun, with which it goes on; None without an article."""
        *words, last = text.split(" ")
        for number in range(min(_MOST_ADJECTIVES + 1, 0 if last else len(words))):
            *others, word = words[: len(words) - number]
            own, article = words[len(words) - number :], word.lower()
            if others and others[-1][-1:] == ",":  # it may begin a relative clause
                return None
            if article in self._parted:
                preposition, article = self._parted[article]
                return _Before([word, *own], preposition, article, own, preposition)
            if article and article in self._places:
                before = others[-1] if others else ""
                if before.lower() in self._joining:
                    return _Before([before, word, *own], before.lower(), article, own, before.lower())
                return _Before([word, *own], "", article, own, before)
            if not (word.islower() and word.isalpha()):
                return None
        return None

    def _written(self, before: _Before, gender: str) -> list[list[str]]:
        """Returns the words before a noun as they are before one of a gender, in the cases that they may have now."""
        now, possible = " ".join(before.words), self._cases.get(before.last.lower(), _CASES)
        cases: dict[str, str] = {}
        for forms, place in self._places[before.article]:
            number = place % len(_GENDERS)
            form, end = forms[place - number + _GENDERS.index(gender)]
            case, adjectives = _CASES[place // len(_GENDERS)], self._bent(before.adjectives, forms[place][1], end)
            is_number = _GENDERS[number] != "p" or gender == "p"
            if not form or adjectives is None or not is_number or case not in possible:
                continue
            article = f"{before.preposition} {form}".strip()
            new = " ".join([self._joined.get(article, article), *adjectives])
            new = new[0].upper() + new[1:] if now[0].isupper() else new
            cases.setdefault(now if (form, adjectives) == (before.article, before.adjectives) else new, case)
        return [words.split(" ") for words in _likely(cases, now, before.last)]

    def _bent(self, adjectives: Sequence[str], now: str, end: str) -> list[str] | None:
        """Returns adjectives with another end; None if one of them has another one now than it must have."""
        matches = [(word, self._adjective.fullmatch(word)) for word in adjectives]
        if any(match is not None and match[2] != now for _, match in matches):
            return None
        return [word if match is None else match[1] + end for word, match in matches]


@functools.cache
def grammar_of(language: str) -> Grammar | None:
    """Returns the grammar of a language, given as a BCP-47 code; None for one without rules."""
    if language.partition("-")[0] != "de":
        return None
    return Grammar(german.NOUNS, german.DETERMINERS, german.PREPOSITIONS, german.JOINED, german.INVARIABLE)


def is_singular(phrase: str, language: str) -> bool:
    """Whether a phrase stands for one thing, as far as its end tells that; only English has rules."""
    return language.partition("-")[0] == "en" and not _PLURAL.search(phrase)


def _likely(cases: Mapping[str, str], now: str, last: str) -> list[str]:
    """Returns the words that are likely before a noun. The present words are, if they agree with it.

    But a sentence seldom begins with a dative or a genitive. And what is put behind another noun is a genitive if it
    may be one.

    Args:
        cases: of all words that are possible there.
        now: the words that are there.
        last: the word before these; empty if they begin the sentence.
    """
    case, wanted = cases.get(now, ""), ""
    if not last and case in ("d", "g"):
        wanted = "n"
    elif last[:1].isupper() and not case:
        wanted = "g"
    likely = [words for words in cases if cases[words] == wanted]
    return likely or ([now] if case else [*cases])
