"""Reads Markdown: CommonMark, with tables, footnotes, front matter and what else GitHub adds.

Each paragraph, heading, list item, quote and cell is a text, in one line: the marks before its other lines go. HTML
blocks are read as HTML, but stay in quotes. Code, definitions of links and rules stay. Each line tells by itself where
a block begins, so there is no tree of lists and quotes.
"""

import itertools
import re
from collections.abc import Sequence

from server.text.markup.builder import Builder
from server.text.markup.document import Document, Watch, unwatched
from server.text.markup.html import read_fragment
from server.text.markup.markdown_inline import normalized, read_inline

_FRONT = re.compile(
    r"(?:---[ \t]*\r?\n.*?^(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n.*?^\+\+\+)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_DEFINITION = re.compile(r"^[ \t>]*+\[(?!\^)((?:[^\[\]\\\n]|\\.){1,999}+)\]:", re.MULTILINE)
_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
_QUOTES = re.compile(r"(?:(?:[ \t]*>)++ ?)?")
_FENCE = re.compile(r"(`{3,}+(?=[^`\n]*+$)|~{3,}+)", re.MULTILINE)
_RULE = re.compile(r"(?:(?:\*[ \t]*+){3,}|(?:-[ \t]*+){3,}|(?:_[ \t]*+){3,}|=++[ \t]*|-++[ \t]*)\r?$", re.MULTILINE)
_HEADING = re.compile(r"#{1,6}(?=\s)[ \t]*+")
_HEADING_END = re.compile(r"(?<=[ \t])#++[ \t]*\r?$", re.MULTILINE)
_ALERT = re.compile(r"\[![A-Za-z]{1,20}+\][ \t]*\r?$", re.MULTILINE)  # of GitHub, in a line of its own
# Of a list, with the box of a task or with marks of a quote, or of a footnote.
_MARKER = re.compile(
    r"(?:[-+*:]|\d{1,9}[.)])(?=\s)[ \t]*+(?:\[[ xX]\](?=\s)[ \t]*+|(?:>[ \t]*+)++)?|\[\^[^\]\s]++\]:[ \t]*+"
)
_TABLE_RULE = re.compile(r"[ \t>]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+\r?\n?")
_CELL_END = re.compile(r"(?<!\\)\|")
_HTML_BLOCK = re.compile(
    r"<(?:(?P<code>pre|script|style|textarea)(?=[\s>])|(?P<comment>!--)|(?P<instruction>\?)|![A-Za-z]"
    r"|/?(?:address|article|aside|base|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    r"|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu"
    r"|nav|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?=[\s/>])"
    r"|(?P<alone>/?[A-Za-z][\w-]*+(?:\s[^<>]*+|/)?>[ \t]*\r?$))",
    re.IGNORECASE | re.MULTILINE,
)
_HTML_ENDS = {
    "code": re.compile(r"</(?:pre|script|style|textarea)>", re.IGNORECASE),
    "comment": re.compile("-->"),
    "instruction": re.compile(r"\?>"),
}
_CODE_INDENT = 4  # columns
_MOST_MARKERS = 16  # of lists that begin in one line; each looks at the whole line
# What would be read as markup: at the beginning of a text, and in it.
_ESCAPED = re.compile(
    r"^(?:#(?=#{0,5}(?:\s|$))|>|[-+](?=\s|$))|^(?P<number>\d{1,9})(?=[.)](?:\s|$))"
    r"|[\\`|]|<(?=[A-Za-z/!?])|&(?=\#?\w+;)|\](?=[(\[:])|~(?=~)|\*(?!(?<=\s\*)\s)|_(?!(?<=\s_)\s|(?<=[^\W_]_)[^\W_])"
)


def escape(text: str) -> str:
    """Returns a plain text as Markdown writes it: with a backslash before what would be read as markup."""
    return _ESCAPED.sub(lambda match: f"{match[0]}\\" if match["number"] else f"\\{match[0]}", text)


def read_markdown(text: str, watch: Watch = unwatched) -> Document:
    """Returns the texts of a Markdown document, and what stands between them.

    Any text is read, in time that is linear in its length.

    Args:
        text: a whole document.
        watch: see `Builder`.
    """
    front = _FRONT.match(text)
    reader = _Reader(text, watch)
    if front:
        reader.builder.stay(front[0])
    lines = (match[0] for match in _LINE.finditer(text, front.end() if front else 0))
    for line, following in itertools.pairwise(itertools.chain(lines, [""])):
        reader.read(line, following)
    return reader.finish()


class _Reader:
    """Goes through the lines of a document, and knows which block is open."""

    def __init__(self, text: str, watch: Watch):
        self.builder = Builder(text, escape, watch)
        self._labels = {normalized(match[1]) for match in _DEFINITION.finditer(text)}
        self._paragraph: list[str] = []
        self._num_quotes = 0  # marks before the lines of the open block
        self._fence = ""  # of the open code block
        self._html_end: re.Pattern[str] | None = None  # of the open HTML block
        self._is_html = False  # whether one is open that ends at an empty line
        self._html: list[str] = []  # its lines
        self._is_table = False
        self._indent = 0  # column at which the text of the last list item begins

    def read(self, line: str, following: str) -> None:
        """Reads a line, with the one behind it."""
        self.builder.count()
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        is_indented = len(indent.expandtabs(_CODE_INDENT)) >= self._indent + _CODE_INDENT
        quotes = None if is_indented else _QUOTES.match(line)
        prefix = quotes[0] if quotes else ""
        rest = line[len(prefix) :]
        num_quotes = prefix.count(">")
        is_within = bool(self._fence or self._html_end or self._is_html)
        if num_quotes < self._num_quotes or (num_quotes > self._num_quotes and not is_within):
            self._end()
            is_within = False
            self._num_quotes = num_quotes
            self._indent = len(prefix) or self._indent
        if is_within:
            self._stay_in_block(line, prefix, rest)
        elif not rest.strip():
            self._end()
            self.builder.stay(line)
        elif self._is_table and "|" in rest:
            self._read_row(prefix, rest)
        else:
            self._is_table = False
            self._read_line(prefix, rest, following)

    def finish(self) -> Document:
        """Returns the document, when all lines are read."""
        self._end()
        return self.builder.finish()

    def _end(self) -> None:
        """Ends the open block."""
        if self._paragraph:
            read_inline("".join(self._paragraph), self._labels, self.builder)
            self.builder.stay("")
        if self._html and not self._num_quotes:
            read_fragment("".join(self._html), self.builder)
        else:
            self.builder.stay("".join(self._html))
        self._paragraph, self._html = [], []
        self._fence, self._html_end, self._is_html, self._is_table = "", None, False, False

    def _stay_in_block(self, line: str, prefix: str, rest: str) -> None:
        """Adds a line of code or HTML. What is indented, or quoted further than the block, is no end of code."""
        content = rest.strip()
        column = len((prefix + rest[: len(rest) - len(rest.lstrip(" \t"))]).expandtabs(_CODE_INDENT))
        may_end = prefix.count(">") == self._num_quotes and column < self._indent + _CODE_INDENT
        if self._fence:
            self.builder.stay(line)
        elif content or self._html_end:
            self._html.append(line)
        is_fence = self._fence and content.startswith(self._fence) and not content.strip(self._fence[0])
        is_html_end = self._html_end.search(rest) is not None if self._html_end else self._is_html and not content
        if (is_fence and may_end) or is_html_end:
            self._end()
            if is_html_end and not content:
                self.builder.stay(line)

    def _read_line(self, prefix: str, rest: str, following: str) -> None:
        """Reads a line that begins a block or goes on with a paragraph."""
        content = rest.lstrip(" \t")
        before = prefix + rest[: len(rest) - len(content)]
        column = len(before.expandtabs(_CODE_INDENT))
        if self._paragraph and not _begins_block(content, following):
            self._paragraph.append(before + content)
            return
        self._end()
        if column >= self._indent + _CODE_INDENT:
            self.builder.stay(before + content)
            return
        self._indent = min(self._indent, column)
        for _ in range(_MOST_MARKERS):
            marker = _MARKER.match(content)
            if not marker or _RULE.match(content):
                break
            before += marker[0]
            column += len(marker[0])
            self._indent = column if not marker[0].rstrip().endswith("]") else column - 4
            content = content[marker.end() :]
        self._begin_block(before, content, following)

    def _begin_block(self, before: str, content: str, following: str) -> None:
        self.builder.stay(before)
        if fence := _FENCE.match(content):
            self._fence = fence[0]
            self.builder.stay(content)
        elif html := _HTML_BLOCK.match(content):
            self._html_end = _HTML_ENDS.get(html.lastgroup or "")
            self._is_html = self._html_end is None
            self._html.append(content)
            if self._html_end and self._html_end.search(content):
                self._end()
        elif _RULE.match(content) or _DEFINITION.match(content) or _ALERT.match(content):
            self.builder.stay(content)
        elif heading := _HEADING.match(content):
            end = found.start() if (found := _HEADING_END.search(content, heading.end())) else len(content)
            self.builder.stay(heading[0])
            read_inline(content[heading.end() : end], self._labels, self.builder)
            self.builder.stay(content[end:])
        elif _begins_table(content, following):
            self._is_table = True
            self._read_row("", content)
        else:
            self._paragraph.append(content)

    def _read_row(self, prefix: str, row: str) -> None:
        self.builder.stay(prefix)
        if _TABLE_RULE.fullmatch(row):
            self.builder.stay(row)
            return
        cells: Sequence[str] = _CELL_END.split(row)
        for index, cell in enumerate(cells):
            self.builder.count()
            if index:
                self.builder.stay("|")
            read_inline(cell, self._labels, self.builder)


def _begins_block(content: str, following: str) -> bool:
    """Whether a line cannot go on with a paragraph."""
    blocks = (_FENCE, _RULE, _HEADING, _MARKER)
    html = _HTML_BLOCK.match(content)
    is_html = html is not None and html["alone"] is None  # a tag that is alone in its line may stand in a paragraph
    return is_html or any(block.match(content) for block in blocks) or _begins_table(content, following)


def _begins_table(content: str, following: str) -> bool:
    return "|" in content and "|" in following and _TABLE_RULE.fullmatch(following) is not None
