import xml.etree.ElementTree as ET

import pytest

from babelserve.formats.document import BadFile
from babelserve.formats.xml_tree import OTHER, TEXT, Node, read_xml
from tests.babelserve.formats.files import EPUB, ODT

BOMB = """<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><a>&c;</a>"""
ODD = """<?xml version="1.0"?>
<!DOCTYPE a [<!ELEMENT a (b)> <!-- ]> ' --> <?x ]>?> <!ATTLIST a b CDATA "]>">]>
<a b='>' c="/>"><!-- <d> --><b/><![CDATA[<e>]]>t &lt; u<b x="1" ></b ></a>
"""


@pytest.mark.parametrize("source", [ODD, *map(str, [ODT["content.xml"], EPUB["OPS/book.opf"]])])
def test_the_tree_has_the_elements_that_another_parser_finds(source: str) -> None:
    text, top = read_xml(source.encode())

    found = [node.name.rpartition(":")[2] for node in top.walk() if node.name not in (TEXT, OTHER)]
    assert found == [element.tag.rpartition("}")[2] for element in ET.fromstring(source).iter()]
    assert text == source


def test_pieces_follow_each_other_without_a_gap() -> None:
    def check(node: Node) -> None:
        position = node.inner_begin
        for child in node.children:
            assert child.begin == position
            position = child.end
            check(child)
        assert not node.children or position == node.inner_end

    check(read_xml(ODD.encode())[1])


def test_attributes_are_ranges_of_the_source() -> None:
    text, top = read_xml(b'<a xml:lang=\'en\' lang = "de" f=""/>')
    (node,) = top.children

    values = [node.attribute(name) for name in ("xml:lang", "lang", "f", "g")]
    assert [place and text[slice(*place)] for place in values] == ["en", "de", "", None]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (BOMB.encode(), "is XML that declares entities"),
        (b'<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]><a/>', "is XML that declares entities"),
        (b"<a>&undeclared;</a>", "is no well-formed XML: undefined entity"),
        (b"<a><b></a>", "is no well-formed XML: mismatched tag"),
        (b"<a>", "is no well-formed XML: no element found"),
        (b"", "is no well-formed XML"),
        (b"<a>" * 101 + b"</a>" * 101, "is XML that is nested more than 100 deep"),
        ("<?xml version='1.0' encoding='latin-1'?><a>é</a>".encode(), "is XML in latin-1; it must be UTF-8"),
        ('<?xml version="1.0" encoding="utf-16"?><a>é</a>'.encode("utf-16"), "is not UTF-8"),
    ],
)
def test_hostile_and_broken_xml_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadFile, match=message):
        read_xml(data)


def test_too_many_pieces_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("babelserve.formats.xml_tree._MOST_PIECES", 5)

    assert len(read_xml(b"<a><b/><c/><d/></a>")[1].children[0].children) == 3
    with pytest.raises(BadFile, match="is XML with more than 5 tags and texts"):
        read_xml(b"<a><b/><c/><d/>e</a>")


def test_a_large_document_is_read() -> None:
    data = b"<a>" + b"<b c='" + b"d" * 1_000_000 + b"'/>" + b"<e/>" * 100_000 + b"</a>"

    assert len(read_xml(data)[1].children[0].children) == 100_001
