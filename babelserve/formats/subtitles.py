"""Subtitles, SRT and WebVTT: the lines of a cue are one text, whose translation is wrapped to as many lines.

Lines that begin with a dash are what different people say: each line of such a cue is a text of its own. Numbers, time
codes, settings, notes and styles stay as they are. https://www.w3.org/TR/webvtt1/
"""

import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from babelserve.formats.document import HTML, PLAIN, BadFile, Document, Standing, Unit, decoded, has_letters, one_text

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_TIMES = re.compile(r"[ \t]*(?:\d+:)?\d+:\d+[.,]\d+[ \t]+-->[ \t]")
_DASHES = ("-", "\u2010", "\u2013", "\u2014")
_WORD = re.compile(r"(?:<[^<>]*+>|[^\s<]|<)++")  # a tag may have blanks in it
# A time within a cue of WebVTT. It is sent as a tag that HTML has, because "<00:10.000>" is none.
_TIME, _SENT_TIME = re.compile(r"<(\d[\d:.]*+)>"), re.compile(r'<wbr t="([\d:.]++)">')
_Lines = list[tuple[int, int]]


def read_srt(data: bytes) -> Document:
    """Reads SubRip in UTF-8. Raises BadFile: it is not UTF-8, or has no cue though it has text."""
    text = decoded(data)
    return one_text(PLAIN, text, _units(text, "SRT"))


def read_vtt(data: bytes) -> Document:
    """Reads WebVTT, whose texts have tags and entities like those of HTML. Raises BadFile."""
    text = decoded(data)
    if not text.removeprefix("\ufeff").startswith("WEBVTT"):
        raise BadFile("is no WebVTT: it does not begin with WEBVTT")
    return one_text(HTML, text, _units(text, "WebVTT"))


def _units(text: str, name: str) -> list[Unit]:
    cues = list(_cues(text))
    if not cues and name == "SRT" and text.strip("\ufeff \t\r\n"):
        raise BadFile(f"is no {name}: it has no time codes")
    units = []
    for lines in cues:
        for group in _texts(text, lines):
            parts = [text[begin:end] for begin, end in group]
            words = " ".join(part.strip() for part in parts)
            words = _TIME.sub(r'<wbr t="\1">', words) if name == "WebVTT" else words
            ends = [text[end:begin] for (_, end), (begin, _) in pairwise(group)]
            if has_letters(words):
                units.append(Unit(words, group[0][0], group[-1][1], partial(_wrapped, ends)))
    return units


def _cues(text: str) -> Iterator[_Lines]:
    """Yields the ranges of each cue's lines, without what ends them."""
    lines: _Lines | None = None
    for found in _LINE.finditer(text):
        line = found[0].rstrip("\r\n")
        if _TIMES.match(line):
            if lines:
                yield lines
            lines = []
        elif not line.strip():
            if lines:
                yield lines
            lines = None
        elif lines is not None:
            lines.append((found.start(), found.start() + len(line)))
    if lines:
        yield lines


def _texts(text: str, lines: _Lines) -> list[_Lines]:
    """The lines of each text of a cue."""
    speaks = [text[begin:end].lstrip().startswith(_DASHES) for begin, end in lines]
    return [[line] for line in lines] if any(speaks[1:]) else [lines]


def _wrapped(ends: list[str], text: str, _: Standing) -> str:
    """Breaks a text into as many lines, about equally long; fewer if it has fewer words.

    Args:
        ends: what stands between two lines of the source, for each such place.
        text: a translation.
    """
    words = _WORD.findall(_SENT_TIME.sub(r"<\1>", text))
    lengths = [len(word) + 1 for word in words]
    total, num_lines = sum(lengths), len(ends) + 1
    lines: list[list[str]] = [[]]
    done = 0
    for index, (word, length) in enumerate(zip(words, lengths, strict=True)):
        place = total * len(lines) / num_lines  # where the line should end
        is_over = done + length / 2 > place or len(words) - index <= num_lines - len(lines)
        if lines[-1] and is_over and len(lines) < num_lines:
            lines.append([])
        lines[-1].append(word)
        done += length
    return "".join(" ".join(line) + (ends[index] if index + 1 < len(lines) else "") for index, line in enumerate(lines))
