"""PowerPoint's PPTX: the paragraphs of slides, of their notes, of tables and of SmartArt.

Runs of one format are one text, whatever the program has split them by. Fields (dates, slide numbers), charts, pictures
and the texts of masters and layouts stay as they are, and so do macros and links. ECMA-376, part 1, chapter 21.
"""

import re
from collections.abc import Iterator

from babelserve.formats.archive import Archive
from babelserve.formats.document import HTML, BadFile, Content, Document, Unit
from babelserve.formats.inline import Format, Group, Piece, Point, Text, units
from babelserve.formats.xml_tree import OTHER, TEXT, Node, read_xml

_PART = re.compile(r"ppt/(slides/slide|notesSlides/notesSlide|diagrams/data)\d+\.xml")
_SLIDES = "ppt/presentation.xml"
_IGNORED = {"a:pPr", "a:endParaRPr", TEXT, OTHER}
# What says which language a run is in, and marks of the spelling checker. They split runs that look alike.
_EDITED = re.compile(r"""\s(?:lang|altLang|dirty|err|smtClean|bmk)\s*+=\s*+("[^"]*"|'[^']*')""")


def read_pptx(data: bytes) -> Document:
    """Reads a presentation of PowerPoint 2007 or newer. Raises BadFile: it is none, or damaged, or too large."""
    archive = Archive(data)
    if _SLIDES not in archive.names:
        raise BadFile(f"is no PPTX: it has no {_SLIDES}")
    contents = {}
    for name, part in archive.read(name for name in archive.names if _PART.fullmatch(name)).items():
        source, top = read_xml(part, "p", "dgm")
        contents[name] = Content(source, list(_units(source, top)))
    return Document(HTML, contents, archive.replaced)


def _units(source: str, top: Node) -> Iterator[Unit]:
    for node in top.walk():
        if node.name == "a:p":
            yield from units(_groups(source, node))


def _groups(source: str, paragraph: Node) -> Iterator[Group]:
    for node in paragraph.children:
        if node.name not in _IGNORED:
            yield Group(node.begin, node.end, _run(source, node) if node.name == "a:r" else [_point(node)])


def _point(node: Node) -> Piece:
    return Point(node.begin, node.end, tag={"a:br": "br", "a:fld": "code"}.get(node.name, "wbr"))


def _run(source: str, run: Node) -> list[Piece]:
    properties = "".join(source[each.begin : each.end] for each in run.children if each.name == "a:rPr")
    look = Format(f"<a:r>{_EDITED.sub('', properties)}<a:t>", "</a:t></a:r>")
    return [Text(source[each.inner_begin : each.inner_end], look) for each in run.children if each.name == "a:t"]
