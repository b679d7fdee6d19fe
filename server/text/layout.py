r"""What parts the texts of programs: syntax between two sentences, which is copied and ends the sentence before it.

That is the syntax of ICU messages (`server.text.icu`); block tags and `<br/>`; Liquid, Jinja, ERB and Handlebars tags,
whose branches must not mix; line breaks that are spelled out as \\n; the bars of a table's row; and lines that are no
text at all: fences of code, the time codes of subtitles.
"""

import re
from collections.abc import Iterator

from server.text.icu import find_messages

_BLOCKS = (
    "br|hr|p|div|h[1-6]|ul|ol|li|dl|dt|dd|table|thead|tbody|tfoot|tr|td|th|caption|section|article|header|footer|nav"
    "|main|aside|figure|figcaption|blockquote|pre|form|fieldset|option|select|html|body|head|title"
)
_SYNTAX = (
    rf"</?(?:{_BLOCKS})(?=[\s/>])[^<>]{{0,200}}+>",
    r"\{%(?:[^{}%]|%(?!\})){0,200}+%\}|\{#[^{}#]{0,200}+#\}|<%(?:[^%<]|%(?!>)){0,200}+%>",
    r"\{\{(?:[#^/!]|\s?else\b)[^{}]{0,80}+\}\}",
)
# Line breaks that are spelled out. One between two blanks is spoken of, and \t before a small letter begins a word.
_ESCAPES = r"(?<=[^\s\\])(?:\\[nrt])++(?!\\)|(?<![^\s])(?:\\[nrt])++(?![\s\\a-z]|$)"
_BREAKS = re.compile(rf"(?:(?:{'|'.join(_SYNTAX)})\s*+)++", re.IGNORECASE)
_ESCAPED_BREAKS = re.compile(rf"(?:(?:{'|'.join(_SYNTAX)})\s*+)++|{_ESCAPES}", re.IGNORECASE)
_OTHER_ESCAPE = re.compile(r"""\\[^nrt"']|\w:\\""")  # what has one is a path, or code
_BAR, _BARS = re.compile(r"\|"), re.compile(r"(?<!\S)\|(?!\S)")
_LEAST_BARS = 2  # between blanks, in a row of a table; a single one is a mark within a sentence
_KEPT_LINE = re.compile(
    r"(?:`{3,}+[^`]*+|~{3,}+\s?[\w+#.-]*+"  # a fence
    r"|(?:\d++:)?\d\d:\d\d[.,]\d{3}\s*+-->.*+|WEBVTT)"  # of subtitles
)
_SIGNS = re.compile(r"[<{\\|]|```|~~~|-->|WEBVTT")  # any syntax has one


def part_messages(text: str) -> Iterator[tuple[str, bool]]:
    """Yields what joins to a text, and whether it is the syntax of an ICU message; takes time linear in the text."""
    end = 0
    for (start, stop), texts in find_messages(text):
        yield text[end:start], False
        end = start
        for begin, until in texts:
            yield text[end:begin], True
            yield text[begin:until], False
            end = until
        yield text[end:stop], True
        end = stop
    yield text[end:], False


def part_line(line: str) -> Iterator[tuple[str, bool]]:
    """Yields what joins to a line without line breaks, and whether it is syntax; takes time linear in the line."""
    if not _SIGNS.search(line):
        yield line, False
        return
    if _KEPT_LINE.fullmatch(line.strip()):
        yield line, True
        return
    has_escapes = "\\" in line and not _OTHER_ESCAPE.search(line)
    bar = _BAR if line.lstrip().startswith("|") else _BARS
    has_bars = line.count("|") >= _LEAST_BARS and len(bar.findall(line)) >= _LEAST_BARS
    for piece, is_syntax in _parted(line, _ESCAPED_BREAKS if has_escapes else _BREAKS):
        if has_bars and not is_syntax:
            yield from _parted(piece, bar)
        else:
            yield piece, is_syntax


def _parted(text: str, pattern: "re.Pattern[str]") -> Iterator[tuple[str, bool]]:
    end = 0
    for match in pattern.finditer(text):
        yield text[end : match.start()], False
        yield match[0], True
        end = match.end()
    yield text[end:], False
