"""How the words of a translation are shared out among the words of its source, for marks to choose from.

All words of both texts count, those as well that the network was not shown. A stand-in binds its two words.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.text.alignment import WordWeights
from server.text.markup.document import STAND_IN

Span = tuple[int, int]
_Array = NDArray[np.float64]

# Of a word's attention that a mark's words need, so that the word is the mark's. Half, and marks have a tenth more
# words; twice that, and they have a tenth less (F1 on 1,529 spans of a lexical model: 0.895, 0.909, 0.881).
_LEAST_SHARE = 0.40
# How strongly a word with a stand-in belongs to marks round that stand-in, and how strongly to no other mark. Each is
# more than everything weaker in a sentence together.
_BOUND, _BARRED = 1e6, 1e3
# The word that a German request adds to its verb, and the attention with which it stands for a word of the source.
# Half, and it goes with the word behind it; 1, and it goes with the verb where the source has "you".
_ADDED, _LEAST_OWN = "Sie", 0.6
_TINY = 1e-9  # no attention: keeps a division from being by 0

_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*|([^\w\s])\1*")


class Words:
    """The words of a text, punctuation marks among them.

    Args:
        text: a sentence.
        known: where words begin and end, in order. What touches none of them is a word by itself.

    Attributes:
        begins, ends: of each word, in code points.
        texts: what each is.
        is_punctuation: whether it is punctuation, bool [words].
        first, last: of each gap between two words, the next gap before a word that is no punctuation, and the last gap
            behind one.
    """

    def __init__(self, text: str, known: Sequence[Span] = ()) -> None:
        spans = _all_words(text, known)
        self.begins, self.ends = [begin for begin, _ in spans], [end for _, end in spans]
        self.texts = [text[begin:end] for begin, end in spans]
        is_punctuation = [_is_punctuation(each) for each in self.texts]
        self.is_punctuation = np.array(is_punctuation, bool)
        self.first, self.last = [len(spans)], [0]
        for index in reversed(range(len(spans))):
            self.first.append(self.first[-1] if is_punctuation[index] else index)
        self.first.reverse()
        for index in range(len(spans)):
            self.last.append(self.last[-1] if is_punctuation[index] else index + 1)

    def __len__(self) -> int:
        return len(self.begins)

    def trimmed(self, first: int, end: int) -> Span:
        """Returns a range of words without the punctuation at its ends; if there is nothing else, as it is."""
        inner = max(first, self.first[first]), min(end, self.last[end])
        return inner if inner[0] < inner[1] else (first, end)

    def indices(self, spans: Sequence[Span]) -> list[int]:
        """Returns which words those are that begin where some known ones do."""
        places = {begin: index for index, begin in enumerate(self.begins)}
        return [places[begin] for begin, _ in spans]

    def edges(self) -> _Array:
        """Returns where each word begins and the last one ends, as shares of the text, [1 + words]."""
        edges = np.array([*self.begins, *self.ends[-1:]], float)
        edges /= edges[-1:]
        return edges


def _is_punctuation(word: str) -> bool:
    return not word[0].isalnum() and all(unicodedata.category(character).startswith("P") for character in word)


def _all_words(text: str, known: Sequence[Span]) -> list[Span]:
    """Returns where the words and punctuation marks of a text begin and end: those known, and all that touch none."""
    words: list[Span] = []
    rest = iter(known)
    following = next(rest, None)
    for match in _WORD.finditer(text):
        while following is not None and following[0] < match.end():
            words.append(following)
            following = next(rest, None)
        if not words or words[-1][1] <= match.start():
            words.append(match.span())
    return words if following is None else [*words, following, *rest]


class Shares:
    """How the attention of each word of a translation is shared out among the words of its source.

    Args:
        sources: words of the source.
        targets: words of the translation.
        words: the attention; None to share by position.
    """

    def __init__(self, sources: Words, targets: Words, words: WordWeights | None) -> None:
        weights = _overlaps(targets.edges(), sources.edges()) if words is None else _sharpened(words, sources, targets)
        self._least = np.full(len(targets), _LEAST_SHARE)
        for row, column in _bonds(sources, targets):
            weights[row] = weights[:, column] = 0.0
            weights[row, column] = _BOUND + _BARRED
            self._least[row] = _BARRED
        self._sums = np.zeros((1 + len(sources), len(targets)))
        np.cumsum(weights.T, axis=0, out=self._sums[1:])

    def of(self, first: int, end: int) -> _Array:
        """Returns what each word of the translation has of a range of words of the source, [targets]."""
        shares: _Array = self._sums[end] - self._sums[first]
        return shares

    def gains(self, first: int, end: int) -> _Array:
        """Returns the same, less what a word needs; more than 0 for a mark's words, [targets]."""
        gains: _Array = self.of(first, end) - self._least
        return gains

    def divide(self, gap: int) -> _Array:
        """Returns how well each gap of the translation divides it as a gap of the source does, [1 + targets]."""
        return np.append(0.0, np.cumsum(2.0 * self._sums[gap] - self._sums[-1]))


def _overlaps(targets: _Array, sources: _Array) -> _Array:
    """Returns which part of each word of the translation lies over each word of the source, [targets, sources].

    Both are edges of words as shares of their texts.
    """
    low = np.maximum.outer(targets[:-1], sources[:-1])
    high = np.minimum.outer(targets[1:], sources[1:])
    overlaps: _Array = np.maximum(high - low, 0.0) / np.diff(targets)[:, None]
    return overlaps


def _sharpened(words: WordWeights, sources: Words, targets: Words) -> _Array:
    """Returns the attention of all words, [targets, sources]; a word that was not shown has that of its equal.

    A word such as an article looks at its neighbour's word for want of one of its own. So each weight counts by what
    it is of the largest one that its word of the source gets. The "Sie" of "Klicken Sie hier" goes with its verb.
    """
    weights = np.zeros((len(targets), len(sources)))
    rows, columns = targets.indices(words.targets), sources.indices(words.sources)
    shown = words.weights * (words.weights / words.weights.max(axis=0, initial=_TINY))
    weights[np.ix_(rows, columns)] = shown / np.maximum(shown.sum(axis=1, keepdims=True), _TINY)
    for row, own in zip(rows, words.weights, strict=True):
        if targets.texts[row] == _ADDED and row > 0 and own.max(initial=0.0) < _LEAST_OWN:
            weights[row] = weights[row - 1]
    unseen = {sources.texts[index]: index for index in set(range(len(sources))).difference(columns)}
    for row in set(range(len(targets))).difference(rows):
        if (column := unseen.get(targets.texts[row])) is not None:
            weights[row, column] = 1.0
    return weights


def _bonds(sources: Words, targets: Words) -> list[tuple[int, int]]:
    """Returns the words of translation and source that have the same stand-in."""
    holders = {each: column for column, text in enumerate(sources.texts) for each in STAND_IN.findall(text)}
    return [
        (row, holders[each])
        for row, text in enumerate(targets.texts)
        for each in STAND_IN.findall(text)
        if each in holders
    ]
