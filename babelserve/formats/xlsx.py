"""Excel's XLSX: the texts of cells. A text that several cells share is translated once.

Numbers, formulas and what they give, names of sheets, comments, charts, macros and links stay as they are, and so do
the headings of tables, because formulas name columns by these. ECMA-376, part 1, chapter 18.
"""

import html
import re
from collections.abc import Iterator

from babelserve.formats.archive import Archive
from babelserve.formats.document import HTML, BadFile, Content, Document, Unit
from babelserve.formats.inline import Format, Group, Piece, Text, units
from babelserve.formats.xml_tree import Node, read_xml

_WORKBOOK = "xl/workbook.xml"
_PART = re.compile(r"xl/(sharedStrings|worksheets/sheet\d+)\.xml")
_TABLE = re.compile(r"xl/tables/table\d+\.xml")
_ESCAPE = re.compile(r"_x[0-9A-Fa-f]{4}_")  # a character that XML cannot have, such as a control


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
            yield html.unescape(_ESCAPE.sub(" ", source[slice(*place)]))


def _units(source: str, top: Node, headings: set[str]) -> Iterator[Unit]:
    for node in top.walk():
        if _local(node) not in ("si", "is"):
            continue
        groups = list(_groups(source, node))
        text = "".join(piece.source for group in groups for piece in group.pieces or () if isinstance(piece, Text))
        if html.unescape(text) not in headings and not _ESCAPE.search(text):
            yield from units(groups)


def _groups(source: str, item: Node) -> Iterator[Group]:
    """Yields the texts and the runs of an item; how it is pronounced stays beside them."""
    for node in item.children:
        if _local(node) == "t":
            yield Group(node.begin, node.end, _texts(source, [node], node.name, "", ""))
        elif _local(node) == "r":
            properties = "".join(source[each.begin : each.end] for each in node.children if _local(each) == "rPr")
            texts = [each for each in node.children if _local(each) == "t"]
            name = texts[0].name if texts else "t"
            yield Group(
                node.begin, node.end, _texts(source, texts, name, f"<{node.name}>{properties}", f"</{node.name}>")
            )


def _texts(source: str, nodes: list[Node], name: str, before: str, after: str) -> list[Piece]:
    look = Format(f'{before}<{name} xml:space="preserve">', f"</{name}>{after}")
    return [Text(source[node.inner_begin : node.inner_end], look) for node in nodes]


def _local(node: Node) -> str:
    return node.name.rpartition(":")[2]
