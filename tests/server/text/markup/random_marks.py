"""Random elements and points of a sentence, and whether a translation has them as the sentence had."""

import html
import random
import re
from collections.abc import Iterator, Sequence

from server.text.markup.document import Mark

_TAG = re.compile("<[^<>]*>")
_MOST_DEPTH = 4


def random_marks(rng: random.Random, length: int) -> list[Mark]:
    """Returns marks with tags of their own: `<3>`, `</3>`, points `<3/>`, at times `</p>` and `<s>` that reach beyond.

    Args:
        rng: decides.
        length: of the sentence, in code points.
    """
    cuts = sorted(rng.randint(0, length) for _ in range(2))
    has_left, has_right = rng.random() < 0.2, rng.random() < 0.2
    first, last = cuts[0] if has_left else 0, cuts[1] if has_right else length
    found = [Mark(0, first, "", "</p>")] if has_left and first else []
    found += _nested(rng, 0, first - 1)
    found += _nested(rng, first, last if not has_right else last - 1)
    if has_right and last < length:
        found += [Mark(last, length, "<s>", ""), *_nested(rng, last, length)]
    return [_with_tags(mark, str(index)) for index, mark in enumerate(found)]


def _with_tags(mark: Mark, name: str) -> Mark:
    if not mark.opening.startswith("<") and not mark.closing.startswith("<"):
        return Mark(mark.begin, mark.end, f"<{name}>" if mark.closing else f"<{name}/>", mark.closing and f"</{name}>")
    return mark


def _nested(rng: random.Random, begin: int, end: int, depth: int = 0) -> Iterator[Mark]:
    for _ in range(rng.randrange(4 if depth < _MOST_DEPTH else 1)):
        if begin > end:
            return
        first = rng.randint(begin, end)
        last = rng.choice([first, rng.randint(first, end), end])
        if first == last and rng.random() < 0.6:
            yield Mark(first, first, "point", "")
        else:
            yield Mark(first, last, "opening", "closing")
            yield from _nested(rng, first, last - 1, depth + 1)
        begin = last


def faults(marks: Sequence[Mark], target: str, placed: str) -> list[str]:
    """Says what is wrong with marks in a translation: "text", "tags", "nesting"; nothing if all is well.

    Args:
        marks: as `random_marks` returns them.
        target: the translation.
        placed: the same, escaped for HTML, with its marks.
    """
    tags = _TAG.findall(placed)
    found = []
    if html.unescape(_TAG.sub("", placed)) != target:
        found.append("text")
    if sorted(tags) != sorted(tag for mark in marks for tag in (mark.opening, mark.closing) if tag):
        found.append("tags")
    elif not _are_nested(marks, tags):
        found.append("nesting")
    return found


def _are_nested(marks: Sequence[Mark], tags: Sequence[str]) -> bool:
    """Whether elements are closed in order, and all marks are within those that they were within in the source."""
    openings = {mark.opening: mark for mark in marks if mark.opening.startswith("<") and mark.opening != "<s>"}
    elements = {mark.closing: mark for mark in openings.values() if mark.closing}
    opened: list[Mark] = []
    for tag in tags:
        if tag in elements:
            if not opened or opened.pop() != elements[tag]:
                return False
        elif tag in openings:
            inner = openings[tag]
            for outer in elements.values():
                touches = outer.begin == inner.begin or inner.end == outer.end
                is_within = outer.begin <= inner.begin and inner.end <= outer.end
                if not touches and is_within != (outer in opened):
                    return False
            if inner.closing:
                opened.append(inner)
        elif opened:  # what reaches beyond the sentence is within no element of it
            return False
    return not opened
