"""XML from strangers as a tree of ranges, so that what is not translated can stay as it is, byte for byte.

expat says whether it is well-formed; one regular expression then finds its pieces. Python's parsers of trees forget how
things were written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from babelserve.formats.document import BadFile, decoded

# What programs write has a few dozen. Half of it would refuse odd documents, and with twice as much paragraphs within
# each other would be written by more calls within each other than Python allows.
_MOST_DEEP = 100
# Of one file, at about 300 bytes of memory. Half of it would refuse long documents of Word, which have one for about
# 20 bytes; with twice as many a small archive could take more than a gigabyte.
_MOST_PIECES = 2_000_000
_PIECE = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>
    |<!DOCTYPE(?:[^>"'\[]++|"[^"]*"|'[^']*')*+(?:\[(?:[^\]"'<]++|"[^"]*"|'[^']*'|<!--.*?-->|<\?.*?\?>|<)*+\]\s*+)?>
    |<(/?)([^\s/>!?]++)((?:[^>"']++|"[^"]*"|'[^']*')*+)>
    |[^<]++""",
    re.DOTALL | re.VERBOSE,
)
TEXT, OTHER = "#text", "#other"  # names of what is no element; OTHER: comments, instructions, CDATA


@dataclass(slots=True)
class Node:
    """An element, a text or another piece.

    Attributes:
        name: as it is written, with its prefix; TEXT or OTHER.
        begin, end: its range in the source.
        inner_begin, inner_end: the range of what it has in it.
        attributes: what stands behind the name in its tag.
        children: of an element.
    """

    name: str
    begin: int
    end: int
    inner_begin: int = 0
    inner_end: int = 0
    attributes: str = ""
    children: list["Node"] = field(default_factory=list)

    def walk(self) -> Iterator["Node"]:
        """Yields the node and all below it, in their order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def attribute(self, name: str) -> tuple[int, int] | None:
        """Returns the range of an attribute's value in the source, or None."""
        found = re.search(rf"""\s{re.escape(name)}\s*=\s*(?:"([^"]*)"|'([^']*)')""", self.attributes)
        if not found:
            return None
        start = self.begin + 1 + len(self.name)
        group = 1 if found[1] is not None else 2
        return start + found.start(group), start + found.end(group)


def read_xml(data: bytes, *prefixes: str) -> tuple[str, Node]:
    """Returns the source, and a node above its root element.

    Args:
        data: the source.
        prefixes: that the name of the root element may have; any without. A file with others has others throughout.

    Raises:
        BadFile: it is not UTF-8, is not well-formed, declares entities, is nested too deep, has too many pieces, or
            other prefixes.
    """
    text = decoded(data)
    _check(data)
    top = Node(OTHER, 0, len(text), 0, len(text))
    stack = [top]
    position = 0
    for number, found in enumerate(_PIECE.finditer(text), 1):
        if number > _MOST_PIECES:
            raise BadFile(f"is XML with more than {_MOST_PIECES} tags and texts")
        if found.start() != position:
            break
        position = found.end()
        slash, name, attributes = found.groups()
        if slash:
            node = stack.pop()
            node.inner_end, node.end = found.span()
        elif name:
            node = Node(name, *found.span(), found.end(), found.end(), attributes)
            stack[-1].children.append(node)
            if not attributes.endswith("/"):
                stack.append(node)
        else:
            kind = OTHER if found[0].startswith("<") else TEXT
            stack[-1].children.append(Node(kind, *found.span()))
    if position != len(text) or len(stack) > 1:
        raise BadFile("is XML with a document type that is not supported")
    root = next(child.name for child in top.children if child.name not in (TEXT, OTHER))
    if prefixes and root.rpartition(":")[0] not in prefixes:
        raise BadFile(
            f"has <{root[:50]}> where office programs write <{prefixes[0]}:...>: save it anew with one of these"
        )
    return text, top


def _check(data: bytes) -> None:
    parser = expat.ParserCreate()
    depth = 0

    def start(_name: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MOST_DEEP:
            raise BadFile(f"is XML that is nested more than {_MOST_DEEP} deep")

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1

    def entity(*_: object) -> None:
        raise BadFile("is XML that declares entities")

    def declaration(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.upper() not in ("UTF-8", "US-ASCII"):
            raise BadFile(f"is XML in {encoding}; it must be UTF-8")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.EntityDeclHandler, parser.XmlDeclHandler = entity, declaration
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise BadFile(f"is no well-formed XML: {error}") from error
