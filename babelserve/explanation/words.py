"""The words of a sentence and of its translation, with what each stands for and how sure the model was of it."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from babelserve.results import Sentence

_WORDS = re.compile(r"\w+|[^\w\s]")
# Least probabilities of a word that is underlined less; below the last one it is underlined most. A word of three
# tokens that the model was rather sure of has about 0.5.
_STEPS = (0.8, 0.5, 0.2)


@dataclass(slots=True)
class Word:
    """A word, or a mark: where it stands in its sentence, in code points, and what is known of it.

    Attributes:
        links: numbers of the words on the other side, with the weights of these links.
        log_prob: sum over its tokens; None if it has none.
        is_term: whether it belongs to a term.
        is_missed: whether the translation lacks this term.
    """

    begin: int
    end: int
    links: dict[int, float] = field(default_factory=dict)
    log_prob: float | None = None
    is_term: bool = False
    is_missed: bool = False


def words_of(sentence: Sentence) -> tuple[list[Word], list[Word]]:
    """Returns the words of a sentence, and those of its translation."""
    sources, targets = _cut(sentence.source_text), _cut(sentence.text)
    for link in sentence.links:
        for one in _within(sources, link.source_begin, link.source_end):
            for other in _within(targets, link.target_begin, link.target_end):
                sources[one].links[other] = targets[other].links[one] = link.weight
    for token in sentence.tokens:
        for place in _within(targets, token.begin, token.end)[:1]:
            targets[place].log_prob = (targets[place].log_prob or 0.0) + token.log_prob
    for term in sentence.terms:
        for place in _within(sources, term.source_begin, term.source_end):
            sources[place].is_term, sources[place].is_missed = True, not term.is_applied
        for place in _within(targets, term.begin, term.end):
            targets[place].is_term = True
    return sources, targets


def row(text: str, words: Sequence[Word], others: Sequence[str]) -> str:
    """Returns a sentence as HTML, each word an element of the class `w`.

    Args:
        text: of the sentence.
        words: of it.
        others: the texts of the words on the other side.
    """
    parts, last = [], 0
    for word in words:
        shown = text[word.begin : word.end]
        places = " ".join(map(str, word.links))
        linked = f' data-l="{places}"' if places else ""
        said = escape(_said(shown, word, others))
        parts.append(
            f'{escape(text[last : word.begin])}<span class="{_classes(word)}"{linked} data-say="{said}">'
            f"{escape(shown)}</span>"
        )
        last = word.end
    return "".join([*parts, escape(text[last:])])


def texts_of(text: str, words: Iterable[Word]) -> list[str]:
    """Returns the words as they are written."""
    return [text[word.begin : word.end] for word in words]


def _cut(text: str) -> list[Word]:
    return [Word(*match.span()) for match in _WORDS.finditer(text)]


def _within(words: Sequence[Word], begin: int, end: int) -> range:
    """Returns the numbers of the words that a range touches."""
    if begin >= end:
        return range(0)
    first = bisect_right(words, begin, key=lambda word: word.end)
    return range(first, bisect_left(words, end, key=lambda word: word.begin))


def _classes(word: Word) -> str:
    names = ["w"]
    if word.log_prob is not None:
        level = sum(math.exp(word.log_prob) < step for step in _STEPS)
        names += [f"u{level}"] if level else []
    names += ["t"] if word.is_term else []
    return " ".join([*names, "missed"] if word.is_missed else names)


def _said(shown: str, word: Word, others: Sequence[str]) -> str:
    """Returns what the page says of a word."""
    linked = [
        f"{others[place]} ({weight:.2f})" for place, weight in sorted(word.links.items(), key=lambda each: -each[1])
    ]
    facts = [f"{shown}: {', '.join(linked) or 'no word of the other side'}"]
    if word.log_prob is not None:
        facts.append(f"probability {math.exp(word.log_prob):.0%}")
    if word.is_term:
        facts.append("a term that the translation lacks" if word.is_missed else "a term")
    return "; ".join(facts)
