"""Draws the tree of a search: from left to right step by step, the path of the translation on top."""

import heapq
import math
import unicodedata
from collections.abc import Sequence
from html import escape

from babelserve.results import FinishReason, SearchNode

_BLANK = "\u2581"
_ROW, _TOP, _CHARACTER, _GAP = 34, 18, 7.5, 26  # pixels; a character of the monospaced font is 7.2 wide
_MOST_CHARACTERS = 18  # of a node


def tree(nodes: Sequence[SearchNode]) -> str:
    """Returns the tree as SVG.

    A node shows its token, and below it the log-probability of its beam, or the score of the hypothesis that ends.
    """
    steps = _steps(nodes)
    rows = _rows(nodes, steps)
    begin_words = any(node.text.startswith(_BLANK) for node in nodes)
    labels = [label(node, begin_words=begin_words) for node in nodes]
    widths = [0.0] * (max(steps) + 1)
    for step, text in zip(steps, labels, strict=True):
        widths[step] = max(widths[step], _CHARACTER * max(_width(text), 6))
    lefts = [0.0]
    for width in widths:
        lefts.append(lefts[-1] + width + _GAP)
    edges: dict[bool, list[str]] = {False: [], True: []}
    texts = []
    for index, node in enumerate(nodes):
        x, y = lefts[steps[index]], _TOP + _ROW * rows[index]
        if node.parent is not None:
            before = steps[node.parent]
            start, height = lefts[before] + widths[before] + 3, _TOP + _ROW * rows[node.parent]
            edges[node.is_chosen].append(_edge(round(start), height - 4, round(x) - 3, y - 4))
        number = shown_number(node.log_prob if node.score is None else node.score)
        chosen = ' class="c"' if node.is_chosen else ""
        texts.append(
            f'<text x="{x:.0f}" y="{y}"{chosen}>{escape(labels[index])}</text>'
            f'<text x="{x:.0f}" y="{y + 11}"{chosen}>{number}</text>'
        )
    paths = [f'<path class="{"p" if chosen else "o"}" d="{"".join(d)}"/>' for chosen, d in edges.items() if d]
    width, height = lefts[-1], _TOP + _ROW * max(rows) + 20
    return (
        f'<svg role="img" aria-label="Tree of the search; the table lists its hypotheses" width="{width:.0f}" '
        f'height="{height}">{"".join(paths)}{"".join(texts)}</svg>'
    )


def shown_number(number: float) -> str:
    """Returns a log-probability or a score with two places; 0 has no sign."""
    if not math.isfinite(number):
        return "never"
    return f"{number:.2f}".replace("-0.00", "0.00")


def label(node: SearchNode, *, begin_words: bool = True) -> str:
    """Returns what a node shows: a token that belongs to the word before it begins with +.

    Args:
        node: of the tree.
        begin_words: whether the vocabulary's blanks stand before words; else they stand behind words.
    """
    if not node.text:
        return "end" if node.finish_reason is FinishReason.STOP else "(kept)"
    text = node.text.strip(_BLANK) or "(blank)"
    if text == node.text and text[:1].isalnum():
        text = f"+{text}" if begin_words else f"{text}+"
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}\u2026"


def said(nodes: Sequence[SearchNode], index: int) -> str:
    """Returns the text of a hypothesis, by its last node."""
    texts: list[str] = []
    place: int | None = index
    while place is not None:
        texts.append(nodes[place].text)
        place = nodes[place].parent
    return "".join(reversed(texts)).replace(_BLANK, " ").strip()


def _edge(x: int, y: int, to_x: int, to_y: int) -> str:
    """Returns a line of a path, a straight one within a row."""
    middle = (x + to_x) // 2
    return f"M{x} {y}h{to_x - x}" if y == to_y else f"M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}"


def _steps(nodes: Sequence[SearchNode]) -> list[int]:
    steps: list[int] = []
    for node in nodes:
        steps.append(0 if node.parent is None else steps[node.parent] + 1)
    return steps


def _rows(nodes: Sequence[SearchNode], steps: Sequence[int]) -> list[int]:
    """Returns the row of each node.

    A node stands in its parent's row if it is the chosen child, or else the child whose beams go on longest. The other
    children begin lines of their own, each in the first row that is free there.
    """
    ends = list(steps)  # the last step of what goes on from each node
    heirs: dict[int, int] = {}
    for index in range(len(nodes) - 1, -1, -1):
        parent = nodes[index].parent
        if parent is None:
            continue
        ends[parent] = max(ends[parent], ends[index])
        heir = heirs.setdefault(parent, index)
        if (nodes[index].is_chosen, ends[index]) > (nodes[heir].is_chosen, ends[heir]):
            heirs[parent] = index
    order = sorted(range(len(nodes)), key=lambda index: (not nodes[index].is_chosen, steps[index]))
    rows = [0] * len(nodes)  # the chosen path has the first one for itself
    num_rows, free, taken = (
        1,
        list[int](),
        list[tuple[int, int]](),
    )  # heaps; the latter by the last step that stands there
    for index in order:
        parent = nodes[index].parent
        if nodes[index].is_chosen:
            continue
        if parent is not None and heirs[parent] == index:
            rows[index] = rows[parent]
            continue
        while taken and taken[0][0] < steps[index]:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if not free:
            free.append(num_rows)
            num_rows += 1
        rows[index] = heapq.heappop(free)
        heapq.heappush(taken, (_line_end(index, heirs, steps), rows[index]))
    return rows


def _line_end(index: int, heirs: dict[int, int], steps: Sequence[int]) -> int:
    while index in heirs:
        index = heirs[index]
    return steps[index]


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "FW" else 1 for each in text)
