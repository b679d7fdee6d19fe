"""EPUB: the XHTML of its chapters, the titles in its table of contents, and the codes of its language.

Code, scripts, formulas and drawings stay as they are, and so does what has `translate="no"`. W3C EPUB 3.3; NCX is the
table of contents of EPUB 2.
"""

import html
import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from babelserve.formats.archive import Archive
from babelserve.formats.document import HTML, BadFile, Content, Document, Unit
from babelserve.formats.inline import Group, Piece, Point, Span, Text, units
from babelserve.formats.xml_tree import OTHER, TEXT, Node, read_xml

_CONTAINER = "META-INF/container.xml"
_TRANSLATED = {"application/xhtml+xml", "application/x-dtbncx+xml"}
_WRAPPERS = re.compile(
    "a|abbr|acronym|b|bdi|bdo|big|cite|del|dfn|em|font|i|ins|label|mark|q|s|small|span|strike|strong|sub|sup|time|tt|u"
)
_WORDS = re.compile("code|data|kbd|math|output|ruby|samp|var")
_POINTS = re.compile(
    "audio|br|button|canvas|embed|iframe|img|input|map|noscript|object|picture|progress|script|select|svg|template|video"
    f"|wbr|{_WORDS.pattern}"
)
_UNSEEN = {"map", "noscript", "script", "svg", "template", "wbr"}  # points that are no word of a sentence
_UNTOUCHED = {"pre", "script", "style", "textarea"}


def read_epub(data: bytes) -> Document:
    """Reads a book. Raises BadFile: it is none, or damaged, or too large, or a chapter is no XHTML."""
    archive = Archive(data)
    packages = [posixpath.normpath(path) for path in _values(archive, _CONTAINER, "rootfile", "full-path")]
    if not packages:
        raise BadFile(f"is no EPUB: it has no {_CONTAINER} that names its package")
    names = dict.fromkeys(name for package in packages for name in _chapters(archive, package))
    contents = {}
    for name, part in archive.read([*packages, *names]).items():
        try:
            source, top = read_xml(part)
        except BadFile as error:
            raise BadFile(f"has {name}, which {error}") from error
        contents[name] = Content(source, [*_languages(top), *(() if name in packages else _units(source, top))])
    return Document(HTML, contents, archive.replaced)


def _values(archive: Archive, name: str, element: str, attribute: str) -> list[str]:
    """An attribute's values in the elements of one name."""
    return [value for (value,) in _rows(archive, name, element, [attribute])]


def _rows(archive: Archive, name: str, element: str, attributes: list[str]) -> Iterator[list[str]]:
    for part in archive.read([name]).values():
        source, top = read_xml(part)
        for node in top.walk():
            if _local(node) == element:
                places = [node.attribute(attribute) for attribute in attributes]
                yield [html.unescape(source[slice(*place)]) if place else "" for place in places]


def _chapters(archive: Archive, package: str) -> Iterator[str]:
    for path, mime_type in _rows(archive, package, "item", ["href", "media-type"]):
        if mime_type in _TRANSLATED:
            yield posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(path)))


def _languages(top: Node) -> Iterator[Unit]:
    for node in top.walk():
        if _local(node) == "html":
            for place in filter(None, (node.attribute("lang"), node.attribute("xml:lang"))):
                yield Unit(None, *place)
        elif node.name == "dc:language":
            yield Unit(None, node.inner_begin, node.inner_end)


def _units(source: str, top: Node) -> Iterator[Unit]:
    blocks: set[int] = set()
    _find_blocks(source, top, blocks)
    yield from _units_of_block(source, top, blocks)


def _find_blocks(source: str, node: Node, blocks: set[int]) -> bool:
    """Adds the ids of those nodes that are blocks, or have one in them; tells whether this is one."""
    name = _local(node)
    if (node.name in (TEXT, OTHER) and not node.children) or _POINTS.fullmatch(name):
        return False
    inner = [_find_blocks(source, child, blocks) for child in node.children]
    if _WRAPPERS.fullmatch(name) and (not any(inner) or _is_kept(source, node)):
        return False
    blocks.add(id(node))
    return True


def _units_of_block(source: str, block: Node, blocks: set[int]) -> Iterator[Unit]:
    """The units of a block: what stands between the blocks in it, and theirs."""
    if _local(block) in _UNTOUCHED or _is_kept(source, block):
        return
    groups = []
    for child in block.children:
        is_block = id(child) in blocks
        groups.append(Group(child.begin, child.end, None if is_block else [_piece(source, child)]))
        if is_block:
            yield from _units_of_block(source, child, blocks)
    yield from units(groups)


def _piece(source: str, node: Node) -> Piece:
    """What stands in a sentence."""
    if node.name == TEXT:
        return Text(source[node.begin : node.end])
    name = _local(node)
    if node.name == OTHER or name in _UNSEEN or (_WRAPPERS.fullmatch(name) and node.inner_begin == node.inner_end):
        return Point(node.begin, node.end)
    if _WORDS.fullmatch(name) or _is_kept(source, node):
        return Point(node.begin, node.end, tag="code")
    if not _WRAPPERS.fullmatch(name):
        return Point(node.begin, node.end, tag="br" if name == "br" else "img")
    opening, closing = source[node.begin : node.inner_begin], source[node.inner_end : node.end]
    return Span(opening, closing, [_piece(source, child) for child in node.children], name)


def _is_kept(source: str, node: Node) -> bool:
    place = node.attribute("translate")
    return place is not None and source[slice(*place)] == "no"


def _local(node: Node) -> str:
    return node.name.rpartition(":")[2]
