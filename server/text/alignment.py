"""Which words of a translation stand for which words of its source.

A network sees pieces of words, with carriers in the place of what it cannot read, and says how much each piece of the
translation has attended to each piece of the source. Here pieces become ranges of the two texts as people see them.
The texts differ a little from what the pieces spell: in case, quotation marks, carriers. So what the pieces spell is
laid along the text by the words and marks that both have in common. What stands between two of these is one range.

Positions are in code points.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
_TOKEN = re.compile(r"\w+|([^\w\s])\1*|\s+")  # a mark that is repeated is one token, so that hostile ones are few
_SPACE, _BLANK = "\u2581", " "  # the former is how vocabularies write the latter
# Of a word's attention that a link must have. Half, and words are linked that have nothing to do with each other; twice
# that, and words that share their attention between two are linked to none.
_LEAST_WEIGHT = 0.15
# Of the attention of the word that has most for a part of the source. Half, and a word that has nothing to do with the
# part stands for it where its translation is missing; twice that, and more terms stand beside what they should replace.
_LEAST_BEST = 0.3
# Of a word's attention that a part of the source must have, for the word to stand for it alone. Half, and articles do;
# a half more, and few words do.
_LEAST_SHARE = 0.6
# Pairs of tokens, blanks included, of texts that are compared: 256 tokens each. Half, and sentences of 100 words that
# differ at both ends are not compared; twice that, and hostile ones take four times as long (35 ms, on a Xeon).
_MOST_COMPARED = 1 << 16

_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Link:
    """A word of a source and a word of its translation that belong together.

    Attributes:
        source, target: where they begin and end, in code points.
        weight: of the target word's attention, 0 to 1.
    """

    source: _Span
    target: _Span
    weight: float


@dataclass(frozen=True, slots=True)
class WordWeights:
    """How much each word of a translation has attended to each word of its source.

    Attributes:
        sources, targets: where the words begin and end, in order: those alone that the network was shown.
        weights: [targets, sources] of the target words' attention, 0 to 1.
    """

    sources: list[_Span]
    targets: list[_Span]
    weights: NDArray[np.float32]


def weigh_words(
    source: str,
    source_pieces: Sequence[str],
    target: str,
    target_pieces: Sequence[str],
    attention: NDArray[np.float32],
) -> WordWeights:
    """Returns the attention between the words of a sentence and its translation.

    Args:
        source: a sentence.
        source_pieces: what each source id spells, [S]; "" for ids that spell nothing.
        target: its translation.
        target_pieces: the same of the translation, [T].
        attention: [T, S] or more rows, of each target id a distribution over the source ids.
    """
    of_source = _words(source, source_pieces)
    of_target = _words(target, target_pieces[: len(attention)])
    rows, columns = _membership(of_target, attention.shape[0]), _membership(of_source, attention.shape[1])
    weights = rows @ attention @ columns.T / np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    np.minimum(weights, 1.0, out=weights)
    return WordWeights([span for span, _ in of_source], [span for span, _ in of_target], weights)


def _membership(words: Sequence[tuple[_Span, list[int]]], num_pieces: int) -> NDArray[np.float32]:
    """Returns [words, pieces]: 1 where a piece belongs to a word, else 0."""
    membership = np.zeros((len(words), num_pieces), np.float32)
    rows = [row for row, (_, pieces) in enumerate(words) for _ in pieces]
    membership[rows, [piece for _, pieces in words for piece in pieces]] = 1.0
    return membership


def link_words(words: WordWeights) -> list[Link]:
    """Returns for each word of a translation the word of the source that it stands for, in the translation's order.

    A word that stands for none has no link, and neither has one that its network was not shown.
    """
    if not words.sources:
        return []
    best, weights = words.weights.argmax(axis=1).tolist(), words.weights.max(axis=1).tolist()
    return [
        Link(words.sources[source], target, weight)
        for target, source, weight in zip(words.targets, best, weights, strict=True)
        if weight >= _LEAST_WEIGHT
    ]


def words_of(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the words that pieces spell, as the first piece and the piece behind the last of each."""
    starts = [index for index, piece in enumerate(pieces) if index == 0 or not piece[:1].isalnum()]
    return list(itertools.pairwise([*starts, len(pieces)]))


def mean_by_word(attention: NDArray[np.float32], words: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
    """Returns what each whole word of a translation has attended to, [words, S], of [T, S] by pieces."""
    whole = [(first, end) for first, end in words if end <= len(attention)]
    if not whole:
        return np.zeros((0, attention.shape[1]), np.float32)
    sums = np.add.reduceat(attention[: whole[-1][1]], [first for first, _ in whole])
    lengths = np.array([[end - first] for first, end in whole], np.float32)
    return np.divide(sums, lengths, dtype=np.float32)


def attending(by_word: NDArray[np.float32], spans: Sequence[_Span | None], span: _Span) -> list[int]:
    """Returns the numbers of the words of a translation that stand for a part of its source, most of all for it.

    Args:
        by_word: [words, S], of each word of the translation a distribution over the source's pieces.
        spans: where each piece of the source stands, [S].
        span: where the part does.
    """
    inside = [index for index, own in enumerate(spans) if own is not None and own[0] < span[1] and span[0] < own[1]]
    shares = by_word[:, inside].sum(axis=1)
    best = shares.max(initial=0.0)
    if best < _LEAST_BEST:
        return []
    numbers: list[int] = np.flatnonzero(shares >= min(_LEAST_SHARE, best)).tolist()  # the best one if none has as much
    of_others = {index for index, own in enumerate(spans) if own is not None}.difference(inside)
    return [number for number in numbers if int(by_word[number].argmax()) not in of_others]


def find_spans(pieces: Sequence[str], text: str) -> list[_Span | None]:
    """Returns where each piece stands in a text; None for a piece that does not.

    Args:
        pieces: in order, with U+2581 for blanks.
        text: about what they spell.
    """
    spelt = "".join(pieces).replace(_SPACE, _BLANK)
    begins, ends = _places(spelt, text)
    spans: list[_Span | None] = []
    end = 0
    for piece in pieces:
        start, end = end, end + len(piece)
        written = spelt[start:end].strip()
        first = spelt.find(written, start)
        span = (begins[first], ends[first + len(written) - 1]) if written else (0, 0)
        spans.append(span if span[0] < span[1] else None)
    return spans


def _places(spelt: str, text: str) -> tuple[list[int], list[int]]:
    """Returns where each character of one text begins and ends in another one; nowhere if both are equal.

    Neither decreases from one character to the next.
    """
    shift = int(spelt.startswith(_BLANK) and not text.startswith(_BLANK))  # most vocabularies begin with a blank
    if spelt[shift:] == text:  # as they mostly are, which takes a tenth of the time to say
        return [0] * shift + [*range(len(text))], [0] * shift + [*range(1, len(text) + 1)]
    begins: list[int] = []
    ends: list[int] = []
    (of_spelt, from_), (of_text, to) = _tokens(spelt), _tokens(_BLANK * shift + text)
    to = [max(0, place - shift) for place in to]
    for tag, first, last, begin, end in _differences(of_spelt, of_text):
        length = from_[last] - from_[first]
        if tag == "equal":
            begins += range(to[end] - length, to[end])
            ends += range(to[end] - length + 1, to[end] + 1)
        else:
            begins += [to[begin]] * length
            ends += [to[end]] * length
    return begins, ends


def _differences(ours: list[str], theirs: list[str]) -> list[tuple[str, int, int, int, int]]:
    """Returns what is equal in two lists and what is not, as `SequenceMatcher.get_opcodes` does.

    It would take cubic time for lists of a few words over and over. So equal ends are taken off first, and if too much
    is left, all of that is one difference.
    """
    shorter = min(len(ours), len(theirs))
    start = next((index for index in range(shorter) if ours[index] != theirs[index]), shorter)
    rest = shorter - start
    same = next((index for index in range(rest) if ours[-1 - index] != theirs[-1 - index]), rest)
    ends = len(ours) - same, len(theirs) - same
    if (ends[0] - start) * (ends[1] - start) > _MOST_COMPARED:
        inner = [("replace", 0, ends[0] - start, 0, ends[1] - start)]
    else:
        matcher = SequenceMatcher(None, ours[start : ends[0]], theirs[start : ends[1]], autojunk=False)
        inner = [(tag, first, last, begin, end) for tag, first, last, begin, end in matcher.get_opcodes()]
    moved = [(tag, start + first, start + last, start + begin, start + end) for tag, first, last, begin, end in inner]
    return [("equal", 0, start, 0, start), *moved, ("equal", ends[0], len(ours), ends[1], len(theirs))]


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """Returns the words, marks and blanks of a text without case, where they begin, and last where the text ends.

    A word that is longer in small letters keeps its case, so that equal words are equally long.
    """
    matches = list(_TOKEN.finditer(text))
    words = [match[0].lower() if len(match[0].lower()) == len(match[0]) else match[0] for match in matches]
    return words, [*(match.start() for match in matches), len(text)]


def _words(text: str, pieces: Sequence[str]) -> list[tuple[_Span, list[int]]]:
    """Returns the words of a text that have pieces, and the indices of these.

    Words that have the same pieces are one: they stand in the place of one carrier.
    """
    placed = [(index, span) for index, span in enumerate(find_spans(pieces, text)) if span is not None]
    indices, spans = [index for index, _ in placed], [span for _, span in placed]
    words: list[tuple[_Span, tuple[int, int]]] = []
    first = last = 0  # both only grow, as no piece begins or ends before the one before it does
    count = len(spans)
    for match in _WORD.finditer(text):
        start, end = match.span()
        while first < count and spans[first][1] <= start:
            first += 1
        while last < count and spans[last][0] < end:
            last += 1
        if first < last and words and words[-1][1] == (first, last) and spans[first] == spans[last - 1]:
            words[-1] = (words[-1][0][0], end), (first, last)
        elif first < last:
            words.append(((start, end), (first, last)))
    return [(span, indices[slice(*own)]) for span, own in words]
