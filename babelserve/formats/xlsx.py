"""Excel's XLSX: each line of a cell is a text. A text that several cells share is translated once.

Numbers, formulas and what they give, names of sheets, comments, charts, macros and links stay as they are, and so do
the headings of tables, because formulas name columns by these. ECMA-376, part 1, chapter 18.
"""

import html
import re
from collections.abc import Iterator

from babelserve.formats.archive import Archive
from babelserve.formats.document import HTML, BadFile, Content, Document, Unit
from babelserve.formats.inline import Format, Group, Piece, Point, Text, units
from babelserve.formats.xml_tree import TEXT, Node, read_xml

_WORKBOOK = "xl/workbook.xml"
_PART = re.compile(r"xl/(sharedStrings|worksheets/sheet\d+)\.xml")
_TABLE = re.compile(r"xl/tables/table\d+\.xml")
_BREAK = re.compile(r"(?:[\r\n]|&#(?:0*1[03]|x0*[AD]);|_x000[AD]_)+", re.IGNORECASE)
_ESCAPE = re.compile(r"_x(?!000[AD]_)[\dA-F]{4}_", re.IGNORECASE)  # another control, or a "_" that begins no escape


def read_xlsx(data: bytes) -> Document:
    """Reads a workbook of Excel 2007 or newer. Raises BadFile: it is none, or damaged, or too large."""
    archive = Archive(data)
    if _WORKBOOK not in archive.names:
        raise BadFile(f"is no XLSX: it has no {_WORKBOOK}")
    parts = archive.read(name for name in archive.names if _PART.fullmatch(name) or _TABLE.fullmatch(name))
    read = {name: read_xml(part) for name, part in parts.items()}
    headings = {
        heading for name, (source, top) in read.items() if _TABLE.fullmatch(name) for heading in _headings(source, top)
    }
    contents = {
        name: Content(source, list(_units(source, top, headings)))
        for name, (source, top) in read.items()
        if _PART.fullmatch(name)
    }
    return Document(HTML, contents, archive.replaced)


def _headings(source: str, top: Node) -> Iterator[str]:
    """Yields the names of a table's columns, which are the texts of its first cells."""
    for node in top.walk():
        if _local(node) == "tableColumn" and (place := node.attribute("name")):
            yield _read(source[slice(*place)])


def _read(source: str) -> str:
    """The text that a cell or a heading shows, each line break in it as a blank."""
    return html.unescape(_ESCAPE.sub(" ", _BREAK.sub(" ", source)))


def _units(source: str, top: Node, headings: set[str]) -> Iterator[Unit]:
    for node in top.walk():
        if _local(node) not in ("si", "is"):
            continue
        runs = [each for each in node.children if _local(each) == "r"]
        texts = [each for parent in (node, *runs) for each in parent.children if _local(each) == "t"]
        text = "".join(source[each.inner_begin : each.inner_end] for each in texts)
        if _read(text) not in headings and not _ESCAPE.search(text):
            yield from units(group for each in node.children for group in _groups(source, each))


def _groups(source: str, node: Node) -> Iterator[Group]:
    """Yields the lines of a text, or a run; how an item is pronounced stays beside them."""
    if _local(node) == "t":
        yield Group(node.begin, node.begin, None)
        for begin, end, is_break in _lines(source, node):
            yield Group(begin, end, None if is_break else [Text(source[begin:end])])
        yield Group(node.end, node.end, None)
    elif _local(node) == "r":
        yield Group(node.begin, node.end, _run(source, node))


def _run(source: str, run: Node) -> list[Piece]:
    properties = "".join(source[each.begin : each.end] for each in run.children if _local(each) == "rPr")
    pieces: list[Piece] = []
    for node in run.children:
        if _local(node) == "t":
            look = Format(f'<{run.name}>{properties}<{node.name} xml:space="preserve">', f"</{node.name}></{run.name}>")
            for begin, end, is_break in _lines(source, node):
                pieces.append(Point(begin, end, look, "br") if is_break else Text(source[begin:end], look))
    return pieces


def _lines(source: str, node: Node) -> Iterator[tuple[int, int, bool]]:
    """Yields the ranges of a text's lines and of what breaks them, and says which are the latter."""
    for child in node.children:
        begin = child.begin
        for found in _BREAK.finditer(source, begin, child.end) if child.name == TEXT else ():
            yield begin, found.start(), False
            yield *found.span(), True
            begin = found.end()
        yield begin, child.end, child.name != TEXT


def _local(node: Node) -> str:
    return node.name.rpartition(":")[2]
