"""Tests of attributes of HTML that are texts of their own."""

import random
import re

import pytest

from server.text.markup.builder import unescape
from server.text.markup.html import read_html
from tests.server.text.markup.identity import identity
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
        # Tags within a text keep theirs.
        ('See <img alt="One"> this <a title="Two">page</a> now', ["See \U000f0000 this page now"]),
        ("<img alt='One", ["One"]),
        ("<img alt='", []),
    ],
)
def test_attributes_that_people_read_are_texts(document: str, expected: list[str]) -> None:
    assert texts(document) == expected


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

    assert read.join([block.escape("a \"b\" & 'c'") for block in read.blocks]) == expected


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
