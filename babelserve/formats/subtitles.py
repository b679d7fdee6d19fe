"""Subtitles, SRT and WebVTT: the lines of a cue are one text, whose translation is wrapped to as many lines.

Lines that begin with a dash, a name in capitals or a voice, such as `<v Anna>`, begin a text of their own, because
different people say them. So do lines that begin with any name, such as `Anna:`, where a cue has at least two of these;
such a name is sent, since it may be a word, such as `Nurse:`. Cues that break a sentence are one text together: one
that ends without punctuation, and the next one, which goes on with a small letter. Each gets words in proportion to
what it had. Numbers, times, settings, notes and styles stay as they are, and so do dashes, names in capitals, and
brackets round a text.

Both formats have tags like those of HTML, and are sent as HTML. SRT has no entities. https://www.w3.org/TR/webvtt1/
"""

import html
import re
from collections.abc import Iterator
from functools import partial
from itertools import accumulate

from babelserve.formats.document import HTML, BadFile, Document, Standing, Unit, decoded, has_letters, one_text

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_TIMES = re.compile(r"[ \t]*(?:\d+:)?\d+:\d+[.,]\d+[ \t]+-->[ \t]")
_DASH = r"[-\u2010\u2013\u2014]"
_NAME = r"[A-Z\u00c0-\u00de][A-Z\u00c0-\u00de0-9 .'#-]{0,30}+:(?!\S)"
_SPEAKS = re.compile(rf"[ \t]*+(?:<[bciu]>)?(?:{_DASH}|{_NAME}|<v[ \t.])")
_CAPITAL = "[A-Z\u00c0-\u00d6\u00d8-\u00de]"
_MAY_SPEAK = re.compile(rf"[ \t]*+(?:<[bciu]>)?{_CAPITAL}[\w.'-]*+(?: (?:{_CAPITAL}|[#\d])[\w.'-]*+){{0,2}}:(?!\S)")
# What is not sent: a place on the screen, a dash, a name.
_AHEAD = re.compile(rf"[ \t]*+(?:\{{\\an?\d+\}}[ \t]*+)?(?:{_DASH}++(?!\d)[ \t]*+)?(?:{_NAME}[ \t]*+)?")
_BRACKETS = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")
_TAG = re.compile(r"(</?(?:[bisu]|font)(?:\s[^<>]*+)?>)", re.IGNORECASE)  # of SRT
_MOST_JOINED = 4  # cues; half, and long sentences are broken; twice, and captions without any punctuation drift far
# Letters between which a line may be broken, but not before what closes or goes on, nor behind what opens.
_HAN_AND_KANA = "\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_THAI_AND_LAO = "\u0e01-\u0e4e\u0e81-\u0ece"
_CLOSING = (
    "\u3001\u3002\u3009\u300b\u300d\u300f\u3011\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\u2019\u201d\u2026.,:;?!)%\"'"
    "\u3005\u3041\u3043\u3045\u3047\u3049\u3063\u3083\u3085\u3087\u30a1\u30a3\u30a5\u30a7\u30a9\u30c3\u30e3\u30e5\u30e7"
    "\u30fb\u30fc\u0e2f-\u0e3a\u0e45-\u0e4e\u0eaf-\u0ebc\u0ec6-\u0ece"
)
_OPENING = "\u3008\u300a\u300c\u300e\u3010\uff08\u2018\u201c(\u0e40-\u0e44\u0ec0-\u0ec4"
_BEGIN = rf"(?:<(?!/)[^<>]*+>|[{_OPENING}])"  # a tag may have blanks in it
_WORDS, _CHARACTERS = (  # looks ahead at three of those, because any number would take quadratic time
    re.compile(
        rf"({_BEGIN}*+(?![{_CLOSING}{_OPENING}])[{letters}](?:</[^<>]*+>|[{_CLOSING}])*+"
        rf"|(?:(?!{_BEGIN}{{0,3}}+(?![{_CLOSING}{_OPENING}])[{letters}])(?:<[^<>]*+>|\S))++)(\s?)"
    )
    for letters in (_HAN_AND_KANA, _HAN_AND_KANA + _THAI_AND_LAO)
)
# A time within a cue of WebVTT. It is sent as a tag that HTML has, because "<00:10.000>" is none.
_TIME, _SENT_TIME = re.compile(r"<(\d[\d:.]*+)>"), re.compile(r'<wbr t="([\d:.]++)">')
# The classes of a tag of WebVTT. They are sent as an attribute, because HTML takes all of "c.red" for a name.
_CLASSES = re.compile(r'<([a-z]++)(\.[^\s<>"]++)(?=[^<>]*+>)')
_SENT_CLASSES = re.compile(r'<([a-z]++) x="(\.[^\s<>"]++)"')
_Lines = list[tuple[int, int]]


def read_srt(data: bytes) -> Document:
    """Reads SubRip in UTF-8. Raises BadFile: it is not UTF-8, or has no cue though it has text."""
    text = decoded(data)
    return one_text(HTML, text, _units(text, "SRT"))


def read_vtt(data: bytes) -> Document:
    """Reads WebVTT, whose texts have tags and entities like those of HTML. Raises BadFile."""
    text = decoded(data)
    if not text.removeprefix("\ufeff").startswith("WEBVTT"):
        raise BadFile("is no WebVTT: it does not begin with WEBVTT")
    return one_text(HTML, text, _units(text, "WebVTT"))


def _units(text: str, name: str) -> list[Unit]:
    cues = list(_cues(text, name == "SRT"))
    if not cues and name == "SRT" and text.strip("\ufeff \t\r\n"):
        raise BadFile(f"is no {name}: it has no time codes")
    texts: list[list[_Lines]] = []  # the lines of each cue that a text has
    for lines in cues:
        first, *others = _texts(text, lines) or [[]]
        if first and texts and len(texts[-1]) < _MOST_JOINED and _goes_on(text, texts[-1][-1], first):
            texts[-1].append(first)
        elif first:
            texts.append([first])
        texts += [[each] for each in others]
    units = []
    for joined in texts:
        _cut_ends(text, joined)
        words = " ".join(text[begin:end].strip() for lines in joined for begin, end in lines)
        if has_letters(_TAG.sub("", words)):
            sent = _as_html(words) if name == "SRT" else _CLASSES.sub(r'<\1 x="\2"', _TIME.sub(r'<wbr t="\1">', words))
            render = partial(_wrapped, text, joined, name == "SRT")
            units.append(Unit(sent, joined[0][0][0], joined[-1][-1][1], render))
    return units


def _cues(text: str, is_srt: bool) -> Iterator[_Lines]:
    """Yields the ranges of each cue's lines, without what ends them.

    An empty line ends a cue of WebVTT. In SRT players show what follows it, too, up to the next cue's identifier: a
    number, or a line between an empty one and the times.
    """
    lines: _Lines | None = None
    behind_empty = -1  # where the line behind the last empty one begins
    for found in _LINE.finditer(text):
        line = found[0].rstrip("\r\n")
        is_time = bool(_TIMES.match(line))
        if line.strip() and not is_time:
            if lines is not None:
                lines.append((found.start(), found.start() + len(line)))
            continue
        if is_time and lines and (lines[-1][0] == behind_empty or text[slice(*lines[-1])].strip().isdecimal()):
            lines.pop()
        behind_empty = behind_empty if is_time else found.end()
        if lines:
            yield lines
        lines = [] if is_time or (is_srt and lines is not None) else None
    if lines:
        yield lines


def _texts(text: str, lines: _Lines) -> list[_Lines]:
    """The lines of each text of a cue."""
    texts: list[_Lines] = []
    named = {begin for begin, end in lines if _MAY_SPEAK.match(text, begin, end)}
    for begin, end in lines:
        if not texts or _SPEAKS.match(text, begin, end) or (begin in named and len(named) > 1):
            texts.append([])
        texts[-1].append((begin, end))
    return texts


def _goes_on(text: str, lines: _Lines, following: _Lines) -> bool:
    """Whether a cue seems to break a sentence that the next one ends. Cues with tags are left apart."""
    before, behind = text[lines[-1][0] : lines[-1][1]].rstrip(), text[slice(*following[0])].lstrip()
    is_plain = not any(sign in text[begin:end] for begin, end in (*lines, *following) for sign in "<{")
    return is_plain and (before[-1:].isalnum() or before[-1:] == ",") and behind[:1].islower()


def _cut_ends(text: str, cues: list[_Lines]) -> None:
    """Takes off a text's lines what is not sent: a dash or a name ahead, and brackets round all of it."""
    first, last = cues[0], cues[-1]
    if ahead := _AHEAD.match(text, *first[0]):
        first[0] = (ahead.end(), first[0][1])
    if first[0][0] == first[0][1] and len(first) > 1:  # a name in a line of its own
        del first[0]
    if _BRACKETS.fullmatch(text, first[0][0], last[-1][1]):
        first[0] = (first[0][0] + 1, first[0][1])
        last[-1] = (last[-1][0], last[-1][1] - 1)


def _as_html(words: str) -> str:
    return "".join(
        part if index % 2 else html.escape(part, quote=False) for index, part in enumerate(_TAG.split(words))
    )


def _as_srt(translation: str) -> str:
    return "".join(part if index % 2 else html.unescape(part) for index, part in enumerate(_TAG.split(translation)))


def _wrapped(text: str, cues: list[_Lines], is_srt: bool, translation: str, _: Standing) -> str:
    """Breaks a translation into cues by the lengths that they had, and each into as many lines, about equally long.

    A cue has fewer lines if it has fewer words, and is empty if it has none. A character of Chinese or Japanese is a
    word, and so is one of Thai or Lao where cues would be empty.
    """
    written = _as_srt(translation) if is_srt else _SENT_CLASSES.sub(r"<\1\2", _SENT_TIME.sub(r"<\1>", translation))
    found = _WORDS.findall(f"{written} ")
    if len(found) < len(cues):
        found = _CHARACTERS.findall(f"{written} ")
    shares = [lines[-1][1] - lines[0][0] for lines in cues]
    words = _split([f"{word} " if blank else word for word, blank in found], shares)
    pieces = []
    position = cues[0][0][0]
    for lines, own in zip(cues, words, strict=True):
        for index, (line, (begin, end)) in enumerate(zip(_split(own, [1] * len(lines)), lines, strict=True)):
            if line or not index:
                pieces += [text[position:begin], "".join(line).rstrip()]
            position = end
    return "".join(pieces)


def _split(words: list[str], shares: list[int]) -> list[list[str]]:
    """Splits words into one piece for each share, of about its part of the whole length; none is empty but the last.

    A word has the blank behind it.
    """
    lengths = [len(word) for word in words]
    scale = sum(lengths) / max(1, sum(shares))
    ends = list(accumulate(shares))
    pieces: list[list[str]] = [[] for _ in shares]
    piece = done = 0
    for index, (word, length) in enumerate(zip(words, lengths, strict=True)):
        is_over = done + length / 2 > scale * ends[piece] or len(words) - index < len(shares) - piece
        if pieces[piece] and is_over and piece + 1 < len(shares):
            piece += 1
        pieces[piece].append(word)
        done += length
    return pieces
