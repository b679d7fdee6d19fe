"""Hand-made XML."""

import pytest

from server.text.markup.document import MalformedDocument
from server.text.markup.tag_rules import NO_RULES, TagRules
from server.text.markup.xml import read_xml
from tests.server.text.markup.identity import identity

PAGE = "<page>\n<h>A dog</h>\n<p>A <b>red</b> dog &amp; a cat.</p>\n</page>"


def texts(document: str, rules: TagRules = NO_RULES) -> list[str]:
    return [block.text for block in read_xml(document, rules=rules).blocks]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (PAGE, ["A dog", "A red dog & a cat."]),
        ("A <b>red</b> dog.<br/>A cat.", ["A red dog.A cat."]),
        ("<b>A dog.</b><b>A cat.</b>", ["A dog.", "A cat."]),
        ("<p>A <b>dog</b>.</p><b>A cat.</b>", ["A dog.", "A cat."]),
        ("<P>A cat <p>runs</p></P>", ["A cat runs"]),
        ("<p>A <![CDATA[<b>]]>\n cat</p>", ["A <b> cat"]),
        ("", []),
        ("<a><b/></a>", []),
    ],
)
def test_an_element_that_stands_beside_text_belongs_to_the_sentence(document: str, expected: list[str]) -> None:
    assert texts(document) == expected


@pytest.mark.parametrize("document", [PAGE, '<?xml version="1.0"?><!DOCTYPE a><a>A <!-- c --><b d=">"/> e</a>', " a "])
def test_what_is_not_translated_comes_back(document: str) -> None:
    assert identity(read_xml(document)) == document


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (TagRules(non_splitting=frozenset({"p"})), ["One. Two."]),
        (TagRules(only_named_split=True), ["One. Two. "]),
        (TagRules(splitting=frozenset({"p"}), only_named_split=True), ["One.", "Two."]),
        (TagRules(splitting=frozenset({"p"}), non_splitting=frozenset({"p"})), ["One.", "Two."]),
    ],
)
def test_a_caller_may_say_which_elements_end_a_sentence(rules: TagRules, expected: list[str]) -> None:
    found = texts("<a><p>One.</p> <p>Two.</p></a>", rules)

    assert [each.strip() for each in found] == [each.strip() for each in expected]


@pytest.mark.parametrize(
    ("document", "kept"),
    [
        ("<p>A <raw>r <raw>s</raw></raw> dog.</p>", ["<raw>r <raw>s</raw></raw>"]),
        ("<p>A <raw/> dog.</p>", ["<raw/>"]),
        ("<a><raw>Not <b>this</b>.</raw><p>A dog.</p></a>", []),
        ("<p>A dog sees &product;.</p>", ["&product;"]),
    ],
)
def test_an_ignored_element_stays_as_it_is(document: str, kept: list[str]) -> None:
    read = read_xml(document, rules=TagRules(ignored=frozenset({"raw"})))

    (block,) = read.blocks
    assert list(block.kept.values()) == kept
    assert identity(read) == document


def test_what_is_no_xml_may_be_read_as_html() -> None:
    document = "<p>A <Raw>x</Raw><br>dog & <b>cat</p>"

    read = read_xml(document, rules=TagRules(ignored=frozenset({"Raw"}), repair=True))

    assert [block.text for block in read.blocks][1] == "dog & cat"
    assert list(read.blocks[0].kept.values()) == ["<Raw>x</Raw>"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("<a>b</c>", "at character 4 a tag ends an element that is not open"),
        ("</a>", "at character 0 a tag ends"),
        ("<a>b", "at character 4 an element is not ended"),
        ("a < b", "at character 2 there is neither"),
    ],
)
def test_what_is_no_xml_is_refused(document: str, message: str) -> None:
    with pytest.raises(MalformedDocument, match=message):
        read_xml(document)
