"""Marks round words of a plain sentence, such as `*` and `*`, or `{0}` and `{/}`, that alignment puts back.

A network that is shown the carriers of such a pair translates the words between them worse: of 160 sentences the rest
had a chrF of 81 to the translation without marks. So where a translation is aligned, its network is shown the sentence
without them, and they are put round the words that stand for what they enclosed (`server.text.markup.placing`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from server.text.alignment import WordWeights
from server.text.glossary import FoundTerm, Glossary
from server.text.markup.document import Mark
from server.text.markup.placing import place_marks
from server.text.masked import KeptPart, Placement, Restored
from server.text.quotes import is_quote
from server.text.runs import Run
from server.text.shortcuts import find_shortcut, with_shortcut
from server.text.typography import ORDINAL_ENDINGS

# Of a sentence. Half, and rows of marked words keep their carriers; twice that, and hostile attention keeps the event
# loop for 4 ms a sentence more.
_MOST_PAIRS = 16
_TAG = re.compile(r"<(?P<name>[A-Za-z]\w*+)[^<>]*+>")


def without_pairs(text: str, runs: Sequence[Run]) -> tuple[str, tuple[Mark, ...]]:
    """Returns a sentence without pairs of marks, and these, with what they enclose in code points of the result.

    Two parts that follow each other are a pair if both touch what is between them, which has a letter, and if neither
    touches a word outside. Tags may touch one, but for an index such as that of H<sub>n</sub>. A sentence of more than
    16 pairs keeps them all. The sign of a shortcut (`server.text.shortcuts`) is a point, unless a part has it.

    Args:
        text: a sentence.
        runs: its parts, in order, apart from each other.
    """
    sign = find_shortcut(text)
    if sign is not None and not any(run.start <= sign < run.end > run.start + 1 for run in runs):
        return text[:sign] + text[sign + 1 :], (Mark(sign, sign, text[sign], ""),)
    pieces: list[str] = []
    marks: list[Mark] = []
    end = length = 0
    for opening, closing in _pairs(text, runs):
        before, inside = text[end : opening.start], text[opening.end : closing.start]
        begin = length + len(before)
        length = begin + len(inside)
        end = closing.end
        marks.append(Mark(begin, length, text[opening.start : opening.end], text[closing.start : closing.end]))
        pieces += [before, inside]
    return ("".join([*pieces, text[end:]]), tuple(marks)) if len(marks) <= _MOST_PAIRS else (text, ())


def _pairs(text: str, runs: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
    opening: Run | None = None
    for run in runs:
        signs = text[run.start : run.end]
        if signs[0].isalnum() or is_quote(signs):  # a word, or what has a way of its own
            opening = None
        elif opening is not None and _is_pair(text, opening, run):
            yield opening, run
            opening = None
        else:
            opening = run


def _is_pair(text: str, opening: Run, closing: Run) -> bool:
    inside = text[opening.end : closing.start]
    if inside[:1].isspace() or inside[-1:].isspace() or not any(map(str.isalpha, inside)):
        return False
    if (
        not text[max(0, opening.start - 1) : opening.start].isalnum()
        and not text[closing.end : closing.end + 1].isalnum()
    ):
        return True
    tag = _TAG.fullmatch(text, opening.start, opening.end)
    is_index = tag is not None and tag["name"] in ("sub", "sup")
    return tag is not None and text.startswith("</", closing.start) and (not is_index or inside in ORDINAL_ENDINGS)


def find_terms(glossary: Glossary, source: str, marks: Sequence[Mark]) -> tuple[FoundTerm, ...]:
    """Returns the terms of a sentence, with their places in it as it was written, signs and marks included.

    A mark ends a word, but the sign of a shortcut does not.

    Args:
        glossary: has the terms.
        source: the sentence without pairs.
        marks: from `without_pairs`; may be empty.
    """
    if not marks or marks[0].closing:
        return tuple(glossary.find(with_blanks(source, marks)))
    place = marks[0].begin
    return tuple(
        replace(each, start=each.start + (each.start >= place), end=each.end + (each.end > place))
        for each in glossary.find(source)
    )


def with_blanks(source: str, marks: Sequence[Mark]) -> str:
    """Returns what a sentence without pairs was, with blanks in the place of their marks: places in both are equal."""
    pieces, end = [], 0
    for mark in marks:
        pieces += [source[end : mark.begin], " " * len(mark.opening), source[mark.begin : mark.end]]
        pieces.append(" " * len(mark.closing))
        end = mark.end
    return "".join([*pieces, source[end:]])


def with_pairs(restored: Restored, source: str, marks: Sequence[Mark], words: WordWeights | None) -> Restored:
    """Returns a translation with its pairs of marks, each of which its parts name.

    Args:
        restored: a translation without them.
        source: the sentence without them.
        marks: from `without_pairs`.
        words: the attention between both; None to place them by position.
    """
    if not marks[0].closing:
        text = with_shortcut(restored.text, marks[0].opening, source[marks[0].begin])
        return replace(restored, text=text, parts=(*restored.parts, KeptPart(marks[0].opening, Placement.BY_MODEL)))
    text = place_marks(marks, source, restored.text, words, str)
    placement = Placement.BY_POSITION if words is None else Placement.BY_MODEL
    if len(text) < len(restored.text) + sum(len(mark.opening) + len(mark.closing) for mark in marks):
        if words is not None:  # no word stands for those of a mark
            return with_pairs(restored, source, marks, None)
        placement = Placement.MISSING  # there are fewer words than marks
    parts = [KeptPart(each, placement) for mark in marks for each in (mark.opening, mark.closing)]
    return replace(restored, text=text, parts=(*restored.parts, *parts))
