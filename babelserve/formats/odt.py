"""OpenDocument's ODT: paragraphs and headings of the text, of notes, tables and frames, and of headers and footers.

Comments and text that tracked changes have deleted stay as they are. OASIS OpenDocument 1.3, part 3.
"""

from collections.abc import Iterator

from babelserve.formats.archive import Archive
from babelserve.formats.document import HTML, BadFile, Content, Document, Unit
from babelserve.formats.inline import Group, Piece, Point, Span, Text, units
from babelserve.formats.xml_tree import TEXT, Node, read_xml

_PARAGRAPHS = {"text:p", "text:h"}
_WRAPPERS = {"text:span", "text:a"}
_BREAKS = {"text:line-break", "text:tab"}
_ENCRYPTED = b"encryption-data"
_UNTOUCHED = {"office:annotation", "text:tracked-changes"}


def read_odt(data: bytes) -> Document:
    """Reads a text document. Raises BadFile: it is none, or damaged, or too large."""
    archive = Archive(data)
    parts = archive.read(["content.xml", "styles.xml"])
    if any(_ENCRYPTED in manifest for manifest in archive.read(["META-INF/manifest.xml"]).values()):
        raise BadFile("is encrypted")
    if "content.xml" not in parts:
        raise BadFile("is no ODT: it has no content.xml")
    contents = {}
    for name, part in parts.items():
        source, top = read_xml(part, "office")
        contents[name] = Content(source, list(_units(source, top)))
    return Document(HTML, contents, archive.replaced)


def _units(source: str, node: Node) -> Iterator[Unit]:
    if node.name in _UNTOUCHED:
        return
    if node.name in _PARAGRAPHS:
        yield from units(Group(child.begin, child.end, [_piece(source, child)]) for child in node.children)
    for child in node.children:
        yield from _units(source, child)


def _piece(source: str, node: Node) -> Piece:
    if node.name == TEXT:
        return Text(source[node.begin : node.end])
    if node.name in _WRAPPERS and node.inner_begin < node.inner_end:
        opening, closing = source[node.begin : node.inner_begin], source[node.inner_end : node.end]
        return Span(opening, closing, [_piece(source, child) for child in node.children])
    is_field = bool(node.children) and all(child.name == TEXT for child in node.children)
    tag = "br" if node.name in _BREAKS else "code" if is_field else "wbr"
    return Point(node.begin, node.end, tag=tag, is_ordered=node.name.endswith(("-start", "-end")))
