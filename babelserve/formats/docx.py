"""Word's DOCX: the paragraphs of the text, of headers, footers, footnotes, endnotes and text boxes.

Runs of one format are one text, whatever the program has split them by. Fields (dates, page numbers, references),
pictures, formulas and text that is struck out by a tracked change stay as they are. ECMA-376, part 1, chapter 17.
"""

import re
from collections.abc import Iterator

from babelserve.formats.archive import Archive
from babelserve.formats.document import HTML, BadFile, Content, Document, Unit
from babelserve.formats.inline import Format, Group, Piece, Point, Span, Text, units
from babelserve.formats.xml_tree import OTHER, TEXT, Node, read_xml

_PART = re.compile(r"word/(document|header|footer|footnotes|endnotes)\d*\.xml")
_WRAPPERS = {"w:bdo", "w:customXml", "w:dir", "w:hyperlink", "w:ins", "w:moveTo", "w:sdt", "w:smartTag"}
_PROPERTIES = {"w:customXmlPr", "w:smartTagPr"}  # of wrappers, before what is in these
_IGNORED = {"w:proofErr"}  # marks of the spelling checker, which split runs
# In a run. A soft hyphen is of a word that the translation does not have.
_NO_PIECES = {"w:rPr", "w:lastRenderedPageBreak", "w:softHyphen", TEXT, OTHER}
_BREAKS = {"w:br", "w:cr", "w:tab", "w:ptab"}
_FIELD = {"w:fldChar", "w:instrText"}
_WORDS = {"w:fldSimple", "m:oMath"}  # that the reader of a sentence sees
_SEEN = re.compile("[^>]</w:t>")
_EDITED = re.compile(r"""\sw:rsid\w*+\s*+=\s*+("[^"]*"|'[^']*')""")  # which session has written it


def read_docx(data: bytes) -> Document:
    """Reads a document of Word 2007 or newer. Raises BadFile: it is none, or damaged, or too large."""
    archive = Archive(data)
    parts = archive.read(name for name in archive.names if _PART.fullmatch(name))
    contents = {}
    for name, part in parts.items():
        source, top = read_xml(part, "w")
        contents[name] = Content(source, list(_units(source, top)))
    if not any(re.fullmatch(r"word/document\d*\.xml", name) for name in parts):
        raise BadFile("is no DOCX: it has no word/document.xml")
    return Document(HTML, contents, archive.replaced)


def _units(source: str, top: Node) -> Iterator[Unit]:
    for node in top.walk():
        if node.name == "w:p":
            yield from units(_groups(source, node.children))


def _groups(source: str, children: list[Node]) -> list[Group]:
    """What stands in a paragraph, or in a wrapper; complete fields are points."""
    groups: list[Group] = []
    begun: list[int] = []  # indices of groups with which fields begin
    for node in children:
        if node.name in ("w:pPr", TEXT, OTHER):
            continue
        kinds = [_field_kind(source, child) for child in node.children] if node.name == "w:r" else []
        if "begin" in kinds:
            begun.append(len(groups))
        groups.append(_group(source, node))
        if "end" in kinds and begun:
            first = begun.pop()
            tag = "code" if any(_is_seen(source, group) for group in groups[first:]) else "wbr"
            point = Point(groups[first].begin, node.end, tag=tag)
            groups[first:] = [Group(groups[first].begin, node.end, [point])]
    return groups


def _is_seen(source: str, group: Group) -> bool:
    """Whether a part of a field shows a text, as an entry of an index does not. Fields in it are not read again."""
    match group.pieces:
        case [Point() as field]:
            return field.tag == "code"
    return bool(_SEEN.search(source, group.begin, group.end))


def _field_kind(source: str, node: Node) -> str:
    place = node.attribute("w:fldCharType") if node.name == "w:fldChar" else None
    return source[slice(*place)] if place else ""


def _group(source: str, node: Node) -> Group:
    pieces: list[Piece] | None
    if node.name in _IGNORED:
        pieces = []
    elif node.name == "w:r":
        pieces = _run(source, node)
    elif node.name in _WRAPPERS:
        content = next((child for child in node.children if child.name == "w:sdtContent"), node)
        begin = max((each.end for each in content.children if each.name in _PROPERTIES), default=content.inner_begin)
        inner = _groups(source, [each for each in content.children if each.begin >= begin])
        parts = [piece for group in inner for piece in group.pieces or ()]
        opening, closing = source[node.begin : begin], source[content.inner_end : node.end]
        is_whole = all(group.pieces is not None for group in inner)
        pieces = [Span(opening, closing, parts)] if is_whole else None
    else:
        tag = "code" if node.name in _WORDS else "wbr"
        pieces = [Point(node.begin, node.end, tag=tag, is_ordered=node.name.endswith(("Start", "End")))]
    return Group(node.begin, node.end, pieces)


def _run(source: str, run: Node) -> list[Piece] | None:
    """The pieces of a run; None if it has a part of a field."""
    properties = "".join(source[each.begin : each.end] for each in run.children if each.name == "w:rPr")
    start = _EDITED.sub("", source[run.begin : run.inner_begin]).removesuffix("/>").rstrip(">")
    whole = Format(f"{start}>{properties}", "</w:r>")
    text = Format(f'{whole.before}<w:t xml:space="preserve">', f"</w:t>{whole.after}")
    pieces: list[Piece] = []
    for child in run.children:
        if child.name in _FIELD:
            return None
        if child.name == "w:t":
            pieces.append(Text(source[child.inner_begin : child.inner_end], text))
        elif child.name == "w:noBreakHyphen":
            pieces.append(Text("\u2011", text))
        elif child.name not in _NO_PIECES:
            tag = "br" if child.name in _BREAKS else "wbr"
            pieces.append(Point(child.begin, child.end, whole, tag))
    return pieces
