"""Tests of attributes of HTML that are texts of their own."""

import random
import re

import pytest

from server.text.markup.builder import unescape
from server.text.markup.html import read_html
from tests.server.text.markup.identity import identity, joined
from tests.server.text.markup.test_html import PIECES


def texts(document: str) -> list[str]:
    return [block.text for block in read_html(document, with_attributes=True).blocks]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ('<p title="One">Two</p>', ["One", "Two"]),
        ("<img alt='A dog'><input placeholder=Name ARIA-LABEL='Your name' value=Ann>", ["A dog", "Name", "Your name"]),
        ('<a href="/" title="Go home">Home</a>', ["Go home", "Home"]),
        ('<button aria-label="Close &quot;it&quot; &amp; go">x</button>', ['Close "it" & go', "x"]),
        ("<img alt=' A dog\n  runs. '>", ["A dog runs."]),
        ('<textarea placeholder="Your text" title="">Raw</textarea>', ["Your text"]),
        ('<iframe title="A film" src=x></iframe><img alt="12" title="One" title="Two">', ["A film", "One"]),
        ('<meta name="Description" content="One"><meta property=og:title content="Two">', ["One", "Two"]),
        ('<meta name="viewport" content="width=device-width"><meta content="One">', []),
        ('<link title="One"><script title="Two"></script><style title="Three"></style>', []),
        # What is not to be translated.
        ('<p translate="no" title="One">Two</p><img alt="One" class=notranslate>', []),
        ('<div translate="no"><img alt="One"></div><svg><a title="One"/></svg>', []),
        ("<!-- <img alt='One'> --><pre><img alt='One'></pre>", []),
        ("<img alt='One", ["One"]),
        ("<img alt='", []),
    ],
)
def test_attributes_that_people_read_are_texts(document: str, expected: list[str]) -> None:
    assert texts(document) == expected


def test_those_within_a_text_have_stand_ins_in_their_tags() -> None:
    source = 'See <img alt="One" src=a> this <a title="Two &amp; three" href="12">page</a> now'
    (block,) = read_html(source, with_attributes=True).blocks

    assert block.text == "See \U000f0000 this page now"
    assert block.kept == {"\U000f0000": '<img alt="\U000f0001" src=a>'}
    assert [tag.source for tag in block.tags] == ['<a title="\U000f0002" href="12">', "</a>"]
    assert {key: value.text for key, value in block.values.items()} == {
        "\U000f0001": "One",
        "\U000f0002": "Two & three",
    }


def test_a_stand_in_of_the_documents_own_stays_its_own() -> None:
    (block,) = read_html('See \U000f0000 <a title="One">this</a> page', with_attributes=True).blocks

    assert [tag.source for tag in block.tags] == ['<a title="\U000f0001">', "</a>"]


def test_they_stay_unless_that_is_asked_for() -> None:
    assert [block.text for block in read_html('<p title="One">Two</p>').blocks] == ["Two"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ('<img alt="One" src=a>', "<img alt=\"a &quot;b&quot; &amp; 'c'\" src=a>"),
        ("<img alt='One' src=a>", "<img alt='a \"b\" &amp; &#39;c&#39;' src=a>"),
        ("<img alt=One src=a>", "<img alt=a&#32;&quot;b&quot;&#32;&amp;&#32;&#39;c&#39; src=a>"),
    ],
)
def test_no_translation_ends_its_value(document: str, expected: str) -> None:
    read = read_html(document, with_attributes=True)

    assert joined(read, [block.escape("a \"b\" & 'c'") for block in read.blocks]) == expected


def test_random_documents_come_back() -> None:
    choose = random.Random(0)
    pieces = [
        *PIECES,
        '<img alt="One &lt; two">',
        "<p title='One two'>",
        "<i title=One>",
        '<img title="two',
        "<b alt='",
    ]
    for _ in range(3000):
        document = "".join(choose.choices(pieces, k=choose.randrange(1, 40)))
        again = identity(read_html(document, with_attributes=True))

        assert _spelled(again) == _spelled(identity(read_html(document))), document


def _spelled(document: str) -> str:
    """Returns a document with its references decoded, without white space and signs that begin a reference."""
    return re.sub(r"[\s&]", "", unescape(document))


@pytest.mark.parametrize("quote", ["'", '"', ""])
@pytest.mark.parametrize(
    ("written", "meant"), [("&#10;", "\n"), ("&#13;", "\r"), ("&#13;&#10;", "\r\n")], ids=["LF", "CR", "CR LF"]
)
def test_line_breaks_that_are_written_as_references_stay(quote: str, written: str, meant: str) -> None:
    document = f"<p title={quote}{written}One{written}two{quote}>"

    assert texts(document) == [f"{meant}One{meant}two"]
    assert identity(read_html(document, with_attributes=True)) == document
