"""How the words of a translation are shared out among the words of its source, for marks to choose from.

All words of both texts count, those as well that the network was not shown. A stand-in binds its two words.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
        known: where words begin and end, in order. The text between them is split into words, too.

    Attributes:
        begins, ends: of each word, in code points.
        texts: what each is.
        known_indices: the indices of the known words, in order.
        is_punctuation: whether it is punctuation, bool [words].
        first, last: of each gap between two words, the next gap before a word that is no punctuation, and the last gap
            behind one.
    """

    def __init__(self, text: str, known: Sequence[Span] = ()) -> None:
        spans, self.known_indices = _all_words(text, known)
        self._text = text
        self.begins, self.ends = [begin for begin, _ in spans], [end for _, end in spans]
        self.texts = [text[begin:end] for begin, end in spans]
        # No letter or digit is punctuation, and most words begin with one: it is quicker to ask that first.
        is_punctuation = [not each[0].isalnum() and _is_punctuation(each) for each in self.texts]
        self.is_punctuation = np.array(is_punctuation, bool)
        punctuation: list[int] = np.flatnonzero(self.is_punctuation).tolist()
        self.first, self.last = [*range(len(spans) + 1)], [*range(len(spans) + 1)]
        for index in reversed(punctuation):
            self.first[index] = self.first[index + 1]
        for index in punctuation:
            self.last[index + 1] = self.last[index]

    def __len__(self) -> int:
        return len(self.begins)

    def trimmed(self, first: int, end: int) -> Span:
        """Returns a range of words without the punctuation at its ends; if there is nothing else, as it is."""
        inner = max(first, self.first[first]), min(end, self.last[end])
        return inner if inner[0] < inner[1] else (first, end)

    def unknown_indices(self) -> set[int]:
        """Returns the indices of the words that are not known."""
        return set(range(len(self))).difference(self.known_indices)

    def stand_ins(self) -> list[tuple[str, int]]:
        """Returns each stand-in of the text with the index of its word, in order."""
        return [(match[0], bisect_right(self.begins, match.start()) - 1) for match in STAND_IN.finditer(self._text)]

    def edges(self) -> _Array:
        """Returns where each word begins and the last one ends, as shares of the text, [1 + words]."""
        edges = np.array([*self.begins, *self.ends[-1:]], float)
        edges /= edges[-1:]
        return edges


def _is_punctuation(word: str) -> bool:
    return all(unicodedata.category(character).startswith("P") for character in word)


def _all_words(text: str, known: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """Returns where the words and punctuation marks of a text begin and end, and the indices of the known ones."""
    words: list[Span] = []
    indices: list[int] = []
    position = 0
    for begin, end in known:
        words += _between(text, position, begin)
        indices.append(len(words))
        words.append((begin, end))
        position = end
    return words + _between(text, position, len(text)), indices


def _between(text: str, begin: int, end: int) -> list[Span]:
    if begin == end or text[begin:end].isspace():
        return []
    return [match.span() for match in _WORD.finditer(text, begin, end)]


class Shares:
    """How the attention of each word of a translation is shared out among the words of its source.

    Args:
        sources: words of the source.
        targets: words of the translation.
        attention: of each known word of the translation over the known words of the source, float32 [known targets,
            known sources]; None to share by position.
    """

    def __init__(self, sources: Words, targets: Words, attention: NDArray[np.float32] | None) -> None:
        if attention is None:
            weights = _overlaps(targets.edges(), sources.edges())
        else:
            weights = _sharpened(attention, sources, targets)
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


def _sharpened(attention: NDArray[np.float32], sources: Words, targets: Words) -> _Array:
    """Returns the attention of all words, [targets, sources]. A word that is not known looks at its equal alone.

    A word such as an article looks at its neighbour's word for want of one of its own. So each weight counts by what
    it is of the largest one that its word of the source gets. The "Sie" of "Klicken Sie hier" goes with its verb.
    """
    weights = np.zeros((len(targets), len(sources)))
    sharp = attention * (attention / attention.max(axis=0, initial=_TINY))
    rows, columns = np.array(targets.known_indices, int), np.array(sources.known_indices, int)
    weights[rows[:, None], columns] = sharp / np.maximum(sharp.sum(axis=1, keepdims=True), _TINY)
    if _ADDED in targets.texts:
        for row, own in zip(targets.known_indices, attention, strict=True):
            if targets.texts[row] == _ADDED and row > 0 and own.max(initial=0.0) < _LEAST_OWN:
                weights[row] = weights[row - 1]
    equals = {sources.texts[column]: column for column in sources.unknown_indices()}
    for row in targets.unknown_indices() if equals else ():
        if (column := equals.get(targets.texts[row])) is not None:
            weights[row, column] = 1.0
    return weights


def _bonds(sources: Words, targets: Words) -> list[tuple[int, int]]:
    """Returns the words of translation and source that have the same stand-in."""
    holders = dict(sources.stand_ins())
    return [(row, holders[each]) for each, row in targets.stand_ins() if each in holders]
