r"""What parts the texts of programs: syntax between two sentences, which is copied and ends the sentence before it.

That is the syntax of ICU messages (`server.text.icu`); block tags and `<br/>`; Liquid, Jinja, ERB and Handlebars tags,
whose branches must not mix; line breaks that are spelled out as \\n; the bars of a table's row; and lines that are no
text at all: code between fences, the time codes of subtitles. A tag that writes something is a placeholder.
"""

import re
from collections.abc import Iterator

from server.text.icu import find_messages
from server.text.patterns import OUTPUT

_BLOCKS = (
    "br|hr|p|div|h[1-6]|ul|ol|li|dl|dt|dd|table|thead|tbody|tfoot|tr|td|th|caption|section|article|header|footer|nav"
    "|main|aside|figure|figcaption|blockquote|pre|form|fieldset|option|select|html|body|head|title"
)
_SYNTAX = (
    rf"</?(?:{_BLOCKS})(?=[\s/>])[^<>]{{0,200}}+>",
    rf"(?!{OUTPUT})<%(?:[^%<]|%(?!>)){{0,200}}+%>",
    r"\{%(?:[^{}%]|%(?!\})){0,200}+%\}|\{#[^{}#]{0,200}+#\}",
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
_CODE_FENCE = re.compile(r"^(?P<indent>[ \t]*+)(?P<fence>`{3,}+|~{3,}+)(?P<info>[^`\r\n]*+)\r?$", re.MULTILINE)


class Syntax(str):
    """A piece of a text that is syntax."""

    __slots__ = ()


def has_syntax(text: str) -> bool:
    """Whether there may be syntax in a text; asked of every one, so a tenth of what a pattern for these signs takes."""
    has_brackets = "<" in text or ">" in text or "{" in text
    return has_brackets or "|" in text or "\\" in text or "`" in text or "~" in text or "WEBVTT" in text


def part_code(text: str) -> Iterator[str]:
    """Yields what joins to a text: code between fences, with these, and the rest. Takes time linear in the text.

    A fence is a line of backticks, or one of tildes that names its language: other lines of tildes are rules and
    underlines. One that stands four columns further right than the first is code within. A fence that no other one
    closes begins no code.
    """
    end = 0
    opening = None
    for fence in _CODE_FENCE.finditer(text):
        if opening is None:
            opening = fence if fence["fence"][0] == "`" or fence["info"].strip() else None
        elif (
            fence["fence"].startswith(opening["fence"])
            and not fence["info"].strip()
            and len(fence["indent"].expandtabs(4)) < len(opening["indent"].expandtabs(4)) + 4
        ):
            yield text[end : opening.start()]
            yield Syntax(text[opening.start() : fence.end()])
            end, opening = fence.end(), None
    yield text[end:]


def part_messages(text: str) -> Iterator[str]:
    """Yields what joins to a text: the syntax of its ICU messages, and the rest. Takes time linear in the text."""
    end = 0
    for (start, stop), texts in find_messages(text):
        yield text[end:start]
        end = start
        for begin, until in texts:
            yield Syntax(text[end:begin])
            yield text[begin:until]
            end = until
        yield Syntax(text[end:stop])
        end = stop
    yield text[end:]


def part_line(line: str) -> Iterator[str]:
    """Yields what joins to a line without line breaks: syntax, and the rest. Takes time linear in the line."""
    if _KEPT_LINE.fullmatch(line.strip()):
        yield Syntax(line)
        return
    has_escapes = "\\" in line and not _OTHER_ESCAPE.search(line)
    bar = _BAR if line.lstrip().startswith("|") else _BARS
    has_bars = line.count("|") >= _LEAST_BARS and len(bar.findall(line)) >= _LEAST_BARS
    for piece in _parted(line, _ESCAPED_BREAKS if has_escapes else _BREAKS):
        if has_bars and not isinstance(piece, Syntax):
            yield from _parted(piece, bar)
        else:
            yield piece


def _parted(text: str, pattern: "re.Pattern[str]") -> Iterator[str]:
    end = 0
    for match in pattern.finditer(text):
        yield text[end : match.start()]
        yield Syntax(match[0])
        end = match.end()
    yield text[end:]
