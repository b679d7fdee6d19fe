"""Puts the marks of a sentence into its translation, by the attention between the words of both.

Every mark is written exactly once, within the marks that were round it, and nothing else of the translation changes. A
mark takes the words that have attended most to its own words. Outer marks choose before inner ones; of marks with the
same parent the surest one chooses first. A point stands where it divides the attention as it divides the source.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from server.text.alignment import WordWeights
from server.text.markup.document import Mark
from server.text.markup.shares import Shares, Span, Words

# Of a word's attention that a mark's words need, so that the word is the mark's where no word gains. Half, and marks
# that should be empty begin to stand round some word; twice that, and four times as many are empty.
_LEAST_OF_ONE = 0.15
# Words of the source times words of the translation: twice as many as sentences of 512 words have. Beyond it
# marks are placed by position alone, in linear time.
_MOST_PAIRS = 1 << 19
_TAKEN = -1e9  # what another mark's word gains: less than all stand-ins of a sentence together can outweigh

_NUMBER = re.compile(r"\d++")

_Array = NDArray[np.float64]


class _Node:
    """A mark and the marks within it.

    Attributes:
        words: range of the source's words that it encloses; of a point, the gap before the next word, twice.
        place: range of the translation's words that it gets; of a point, the gap, twice.
    """

    __slots__ = ("children", "mark", "place", "words")

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        self.children: list[_Node] = []
        self.words: Span = (0, 0)
        self.place: Span = (0, 0)


def place_marks(
    marks: Sequence[Mark], source: str, target: str, words: WordWeights | None, escape: Callable[[str], str]
) -> str:
    """Returns a translation with the opening and the closing of each mark.

    Takes linear time in the texts and the marks: some 10 us for a mark. Only marks with words that their parent has not
    alone are searched for, which takes up to 0.1 ms each; a sentence has fewer than twice as many of these as words.

    Args:
        marks: of the source, in its order, properly nested, outer ones before inner ones. A mark that begins where one
            with words ends stands behind that; one in the place of an empty element before it stands within that.
        source: a sentence.
        target: its translation. If both are equal, marks stand where they stood.
        words: the attention between both; None to place marks by position.
        escape: writes what stands between two marks.
    """
    root, nodes = _nest(marks, len(source))
    if source == target:
        return _write(root, lambda node: (node.mark.begin, node.mark.end), target, escape)
    known = (words.sources, words.targets) if words is not None else ((), ())
    sources, targets = Words(source, known[0]), Words(target, known[1])
    if len(sources) * len(targets) > _MOST_PAIRS:
        return _write(root, _by_position(len(source), len(target), targets), target, escape)
    shares = Shares(sources, targets, words.weights if words is not None else None)
    root.words, root.place = (0, len(sources)), (0, len(targets))
    for node in (root, *nodes):  # parents come first
        if node.children:
            _Room(node, sources, targets, shares).place_children()
    return _write(root, _by_words(source, target, targets), target, escape)


def _nest(marks: Sequence[Mark], length: int) -> tuple[_Node, list[_Node]]:
    """Returns a mark round everything, and all others in their order, each among the children of its parent."""
    root = _Node(Mark(0, length, "", ""))
    nodes = [_Node(mark) for mark in marks]
    around = [root]
    for node in nodes:
        while len(around) > 1 and not _encloses(around[-1].mark, node.mark):
            around.pop()
        around[-1].children.append(node)
        around.append(node)
    return root, nodes


def _encloses(outer: Mark, inner: Mark) -> bool:
    if outer.begin == outer.end:
        return bool(outer.closing) and outer.begin == inner.begin == inner.end
    return inner.end <= outer.end and (inner.begin < outer.end or not outer.closing)


class _Room:
    """The place of one mark, in which its children get theirs."""

    def __init__(self, parent: _Node, sources: Words, targets: Words, shares: Shares) -> None:
        self._parent = parent
        self._low, self._high = parent.place
        self._sources = sources
        self._targets = targets
        self._shares = shares
        self._is_taken = np.zeros(len(targets), bool)
        self._is_inner = np.zeros(len(targets) + 1, bool)  # of each gap: whether it is within a child

    def place_children(self) -> None:
        """Gives each child its place, and puts them into the order of the translation."""
        spans, points = self._sorted()
        if self._low == self._high:
            spans, points = [], self._parent.children
        waiting = [node for node in spans if not self._take_end(node)]
        if len(waiting) > 1:
            gains = {node: self._best(node)[1] for node in waiting}
            waiting.sort(key=lambda node: -gains[node])
        for node in waiting:
            place, _ = self._best(node)
            if place is None:
                points.append(node)
            else:
                self._take(node, place)
        gaps = {node.words[0]: 0 for node in points}
        for gap in gaps:
            gaps[gap] = self._dividing_gap(gap)
        for node in points:
            node.place = gaps[node.words[0]], gaps[node.words[0]]
        self._parent.children.sort(key=lambda node: node.place)

    def _sorted(self) -> tuple[list[_Node], list[_Node]]:
        """Finds the children's words, none of which belongs to two. Returns children with words, and without."""
        spans: list[_Node] = []
        points: list[_Node] = []
        start, end = self._parent.words
        free = start
        for node in self._parent.children:
            first = max(bisect_right(self._sources.ends, node.mark.begin), free)
            last = min(bisect_left(self._sources.begins, node.mark.end), end)
            if node.mark.begin < node.mark.end and first < last:
                node.words = first, last
                free = last
                spans.append(node)
            else:
                gap = min(max(bisect_left(self._sources.begins, node.mark.begin), start), end)
                node.words = gap, gap
                points.append(node)
        return spans, points

    def _take(self, node: _Node, place: Span) -> None:
        node.place = place
        self._is_taken[place[0] : place[1]] = True
        # What reaches beyond the sentence has one end here, so nothing can stand at its other one.
        self._is_inner[place[0] + bool(node.mark.opening) : place[1] + (not node.mark.closing)] = True

    def _take_end(self, node: _Node) -> bool:
        """Places a mark that reaches to an end of the room. Returns whether it does."""
        (first, end), (low, high), targets = node.words, (self._low, self._high), self._targets
        reaches_left = first == self._parent.words[0] or not node.mark.opening
        reaches_right = end == self._parent.words[1] or not node.mark.closing
        if self._sources.trimmed(first, end) == self._sources.trimmed(*self._parent.words):
            trimmed = targets.trimmed(low, high)
            self._take(node, (low if reaches_left else trimmed[0], high if reaches_right else trimmed[1]))
        elif not node.mark.closing:
            gap = self._dividing_gap(first)
            self._take(node, (gap if self._sources.is_punctuation[first] else min(high, targets.first[gap]), high))
        elif not node.mark.opening:
            gap = self._dividing_gap(end)
            self._take(node, (low, gap if self._sources.is_punctuation[end - 1] else max(low, targets.last[gap])))
        else:
            return False
        return True

    def _best(self, node: _Node) -> tuple[Span | None, float]:
        """Returns the free words for a mark, and how much they gain; None if no word has enough of its words."""
        room = slice(self._low, self._high)
        is_taken, gains = self._is_taken[room], self._shares.gains(*node.words)[room]
        has_only_punctuation = self._sources.first[node.words[0]] >= node.words[1]
        if not has_only_punctuation:
            gains = np.where(self._targets.is_punctuation[room], np.minimum(gains, 0.0), gains)
        first, end, gain = _largest_sum(np.where(is_taken, _TAKEN, gains))
        if gain <= 0.0:
            is_barred = is_taken if has_only_punctuation else is_taken | self._targets.is_punctuation[room]
            shares = np.where(is_barred, 0.0, self._shares.of(*node.words)[room])
            first = int(shares.argmax())
            end, gain = first + 1, float(gains[first])
            if shares[first] < _LEAST_OF_ONE:
                return None, gain
        return self._with_punctuation(node, self._low + first, self._low + end), gain

    def _with_punctuation(self, node: _Node, first: int, end: int) -> Span:
        """Adds the punctuation that touches the ends of a mark's place, if the source's words have some there."""
        targets, is_free = self._targets, self._targets.is_punctuation & ~self._is_taken
        if self._sources.is_punctuation[node.words[0]]:
            while first > self._low and is_free[first - 1] and targets.ends[first - 1] == targets.begins[first]:
                first -= 1
        if self._sources.is_punctuation[node.words[1] - 1]:
            while end < self._high and is_free[end] and targets.begins[end] == targets.ends[end - 1]:
                end += 1
        return first, end

    def _dividing_gap(self, gap: int) -> int:
        """Returns the gap, within no child, that divides the attention as a gap of the source divides the source."""
        room = slice(self._low, self._high + 1)
        return self._low + int(np.where(self._is_inner[room], -np.inf, self._shares.divide(gap)[room]).argmax())


def _largest_sum(gains: _Array) -> tuple[int, int, float]:
    """Returns first, end and sum of the range with the largest sum; of several the first one that is shortest."""
    sums = np.zeros(1 + len(gains))
    np.cumsum(gains, out=sums[1:])
    least = np.minimum.accumulate(sums[:-1])
    end = int((sums[1:] - least).argmax()) + 1
    first = int(np.flatnonzero(sums[:end] == least[end - 1])[-1])
    return first, end, float(sums[end] - sums[first])


_Locate = Callable[[_Node], Span]


def _by_words(source: str, target: str, targets: Words) -> _Locate:
    begins, ends = [*targets.begins, len(target)], [0, *targets.ends]

    def locate(node: _Node) -> Span:
        first, end = node.place
        if first < end and _is_ordinal_ending(source, node.mark):
            number = _NUMBER.match(target, begins[first], ends[end])
            if number:  # the full stop of German is its ending
                return number.end(), ends[end] + (
                    number.end() == ends[end] and target[ends[end] : ends[end] + 1] == "."
                )
        if first < end:
            return begins[first], ends[end]
        begin = node.mark.begin
        at = ends[first] if begin > 0 and not source[begin - 1].isspace() else begins[first]
        return at, at

    return locate


def _is_ordinal_ending(source: str, mark: Mark) -> bool:
    """Whether a mark encloses the letters behind a number, as in 1<sup>st</sup>."""
    return mark.begin > 0 and source[mark.begin - 1].isdecimal() and source[mark.begin].isalpha()


def _by_position(source_length: int, target_length: int, targets: Words) -> _Locate:
    begins, ends = [*targets.begins, target_length], [0, *targets.ends]

    def locate(node: _Node) -> Span:
        first, end = (
            bisect_left(targets.begins, position * target_length // source_length)
            for position in (node.mark.begin, node.mark.end)
        )
        return begins[first], ends[end]

    return locate


def _write(root: _Node, locate: _Locate, target: str, escape: Callable[[str], str]) -> str:
    """Returns a translation with all marks, each behind what is before it in the order of its parent's children."""
    written: list[str] = []
    position = 0
    for at, tag in _tags(root, locate, len(target)):
        if at > position:
            written.append(escape(target[position:at]))
            position = at
        written.append(tag)
    return "".join([*written, escape(target[position:])])


def _tags(root: _Node, locate: _Locate, length: int) -> Iterator[tuple[int, str]]:
    """Yields openings and closings in their order, and where they stand, none behind its parent's closing.

    Emphasis of Markdown, whose ends are alike, has none where it has no text: "****" would be read as text. It does
    not recurse, as marks may be nested deep.
    """
    stack = [(node, length, False) for node in reversed(root.children)]
    while stack:
        node, limit, is_over = stack.pop()
        if is_over:
            yield limit, node.mark.closing
            continue
        begin, end = (min(each, limit) for each in locate(node))
        if begin < end or node.mark.opening != node.mark.closing:
            yield begin, node.mark.opening
            stack.append((node, end, True))
        stack.extend((child, end, False) for child in reversed(node.children))
