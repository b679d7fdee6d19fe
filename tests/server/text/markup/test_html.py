"""Hand-made documents, each with what is translated of it, and random ones."""

import random
import re
from collections import Counter

import pytest

from server.text.markup.builder import Builder, unescape
from server.text.markup.document import Block
from server.text.markup.html import _Reader, escape, read_html
from tests.server.text.markup.identity import identity


def texts(document: str) -> list[str]:
    """Returns the texts of a document, with tags and what is kept in their places between braces."""
    return [_shown(block) for block in read_html(document).blocks]


def _shown(block: Block) -> str:
    text, position = "", 0
    for tag in block.tags:
        text += block.text[position : tag.position] + "{" + tag.source + "}"
        position = tag.position
    text += block.text[position:]
    for stand_in, source in block.kept.items():
        text = text.replace(stand_in, "[" + source + "]")
    return text


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        # Block tags end a text; inline tags stand in it.
        ("<h1>One</h1><p>Two</p>three", ["One", "Two", "three"]),
        ("<ul><li>One<li>Two</ul>", ["One", "Two"]),
        ("One<br>two<hr>three", ["One", "two", "three"]),
        ("<title>A <b> & c</title>", ["A <b> & c"]),
        ("<table><tr><td>One<td>Two</table>", ["One", "Two"]),
        ("<label>Name <button>Save</button></label><option>Red", ["Name", "Save", "Red"]),
        ("See <a href='x'>this <b>page</b></a> now", ["See {<a href='x'>}this {<b>}page{</b>}{</a>} now"]),
        ("One <img src=a.png> two", ["One [<img src=a.png>] two"]),
        ("<img src=a> One <img src=b>", ["One"]),
        ("H<sub>2</sub>O flows<sup>1</sup>", ["H[<sub>2</sub>]O flows[<sup>1</sup>]"]),
        ("One<sup>a note</sup> two", ["One{<sup>}a note{</sup>} two"]),
        ("The 1<sup>st</sup> of May", ["The 1{<sup>}st{</sup>} of May"]),
        ("<a>One</a> | <a>two</a> &raquo; three", ["One", "{<a>}two{</a>} » three"]),
        ("One | two", ["One | two"]),
        ("a long <wbr/>word, <x-y id=1 />", ["a long {<wbr/>}word,"]),
        ("One <!-- c --> two <?php x ?> three", ["One {<!-- c -->} two {<?php x ?>} three"]),
        ("One <script>if (a < b) {}</SCRIPT > two", ["One {<script>if (a < b) {}</SCRIPT >} two"]),
        ("One <svg><title>t</title><path/></svg> two", ["One {<svg><title>t</title><path/></svg>} two"]),
        # What stays between texts.
        ("<!doctype html><style>p > a {}</style><p>One</p>", ["One"]),
        ("<pre>int <b>main</b></pre><textarea>One</textarea><template><p>Two</template>", []),
        ("<noscript>Please enable scripts.</noscript>", ["Please enable scripts."]),
        ("<p><b>12</b> &mdash; <code>x</code></p>", []),
        # What a sentence has a stand-in for.
        ("Use <code>a <b>c</b></code> or <kbd>x</kbd>.", ["Use [<code>a <b>c</b></code>] or [<kbd>x</kbd>]."]),
        ("Let <math><mi>x</mi></math> be", ["Let [<math><mi>x</mi></math>] be"]),
        ("Ask <span translate='no'>Big <i>Co</i></span> now", ["Ask [<span translate='no'>Big <i>Co</i></span>] now"]),
        ("Ask <i class='a notranslate'>Ann</i> now", ["Ask [<i class='a notranslate'>Ann</i>] now"]),
        ("Ask <i title='translate=\"no\"'>Ann</i> now", ["Ask {<i title='translate=\"no\"'>}Ann{</i>} now"]),
        ("Ask <code>one<p>two</code> now", ["Ask", "now"]),
        ("<p>Ask <code>one</p>two", ["Ask [<code>one]", "two"]),
        # Blocks that are not translated, and what is within.
        ("<div TRANSLATE=NO>One <p>two</p> <p translate=yes>three</p> four</div> five", ["three", "five"]),
        ("<ul><li translate=no>One<li>Two</ul>", ["Two"]),
        ("<ul><li translate=no>One</ul>Two", ["Two"]),
        ("<p translate=no>One</i> two</p>", []),
        # Entities and white space.
        ("&lt;b&gt; &amp;amp; caf&eacute &#x20AC; &notit; &unknown;", ["<b> &amp; café € ¬it; &unknown;"]),
        ("<p> One\n  two\t three </p>", ["One two three"]),
        ("<p>One&nbsp;two &nbsp;</p>", ["One\u00a0two \u00a0"]),
        ("&#" + "0" * 5000 + "65; and &#" + "9" * 5000 + ";", ["A and \ufffd"]),
        # Malformed markup.
        ("a < b <3 c <> d", ["a < b <3 c <> d"]),
        ("<P CLASS=x>One</P ><B>two</b> three", ["One", "{<B>}two{</b>} three"]),
        ('One <a title="x > y" rel=/>two</a> three', ['One {<a title="x > y" rel=/>}two{</a>} three']),
        ("One <b two", ["One"]),
        ('One <b x="> two', ["One"]),
        ("One <!-- two", ["One"]),
        ("One <!--> two <!---> three", ["One {<!-->} two {<!--->} three"]),
        ("One <![CDATA[x]]> two </> three </ > four", ["One {<![CDATA[x]]>} two {</>} three {</ >} four"]),
        ("<script>One", []),
        ("", []),
    ],
)
def test_a_document_has_texts(document: str, expected: list[str]) -> None:
    assert texts(document) == expected
    assert markup_and_words(identity(read_html(document))) == markup_and_words(document)


def test_what_is_not_text_comes_back_as_it_is() -> None:
    document = (
        "<!DOCTYPE html>\r\n<html lang='en'>\n<title>One &amp; two</title >\n<BODY\n class = x>"
        '<p>\n\t<b>Three <i>four</i></b> <img alt="a > b"/></p>\n<p><a href=x>five </a>six&nbsp;</p>\n</html>\n\n'
    )

    assert identity(read_html(document)) == document.replace("five </a>", "five </a>")


def test_tags_at_the_ends_of_a_text_stay_outside() -> None:
    document = read_html("<p> <!-- c --> <b> <i>One</i> two</b> <img> </p>")

    assert [document.leading, document.blocks[0].behind] == ["<p> <!-- c --> <b> ", "</b> <img> </p>"]
    assert texts("<p> <b> One </b> two</p>") == ["{<b>}One {</b>} two"]


def test_white_space_that_is_written_as_a_reference_stays() -> None:
    document = "<p>&#32;One&#9;<b>two</b> three&NewLine; </p>"

    assert identity(read_html(document)) == document.replace("&#9;", " ")
    assert texts(document) == ["One {<b>}two{</b>} three"]
    assert identity(read_html("One&#321;")) == "One\u0141"


def test_tags_know_their_partners() -> None:
    def partners(document: str) -> list[int | None]:
        return [tag.partner for tag in read_html(document).blocks[0].tags]

    assert partners("a <b>c <i>d</i></b> e") == [3, 2, 1, 0]
    assert partners("a <b>c <i>d</b> e</i> f") == [2, None, 0, None]
    assert partners("a </b>c <wbr>d <i>e") == [None, None, None]
    [block] = read_html("a </b>c <wbr>d <i>e").blocks
    assert [(tag.is_end, tag.is_void) for tag in block.tags] == [(True, False), (False, True), (False, False)]


def test_stand_ins_are_characters_that_the_document_does_not_have() -> None:
    [block] = read_html("\U000f0000 &#983041; one <code>x</code>").blocks

    assert block.text == "\U000f0000 \U000f0001 one \U000f0002"
    assert block.kept == {"\U000f0002": "<code>x</code>"}


def test_where_no_stand_in_is_left_an_element_is_a_tag() -> None:
    [block] = read_html("One " + "<code>x</code>" * 65_540).blocks

    assert (len(block.kept), len(block.tags)) == (65_534, 6)


def test_plain_text_is_escaped() -> None:
    assert escape('a < b & "c" > d\u00a0e') == 'a &lt; b &amp; "c" &gt; d&nbsp;e'


@pytest.mark.parametrize("piece", ["<b>", "</b>", "<b>One", "<b></i>", "<p translate=no>", "<code>", "<br>", "<svg>"])
def test_many_and_deep_tags_come_back(piece: str) -> None:
    document = "One " + piece * 10_000 + "two"

    assert identity(read_html(document)) == document


PIECES = (
    *("<p>", "</p>", "<b>", "</b>", "<i class=x>", "</i>", "<br/>", "<img>", "<code>", "</code>", "<svg>", "</svg>"),
    *("<div translate=no>", "</div>", "<span class='notranslate'>", "</span>", "<a translate=yes>", "</a>", "<pre>"),
    *("</pre>", "<title>", "</title>", "<script>", "</script>", "<style/>", "<!--", "-->", "<!", "<?", "</", ">", "<"),
    *(
        "<li>",
        "<td>",
        '<a x="',
        "'",
        '"',
        "=",
        "/",
        " ",
        "\n",
        "&amp;",
        "&lt;",
        "&#983040;",
        "&nbsp",
        "&",
        "One",
        "two",
    ),
    *("<x-y/>", "<textarea>", "</textarea>", "<math>", "</math>", "<![CDATA[", "]]>", "\U000f0000", "é", "1"),
)


def markup_and_words(document: str) -> list[str]:
    """Returns the tokens of a document that are not text, and the words of the others."""
    found: list[str] = []
    for token in _Reader(document, Builder(document, escape)).tokens():
        found += unescape(token.source).split() if token.is_text else [token.source]
    return found


def test_random_documents_come_back() -> None:
    choose = random.Random(0)
    for _ in range(3000):
        document = "".join(choose.choices(PIECES, k=choose.randrange(1, 40)))
        again = identity(read_html(document))

        reader = _Reader(document, Builder(document, escape))
        assert "".join(token.source for token in reader.tokens()) == document
        assert Counter(re.findall(r"\w+", unescape(again))) == Counter(re.findall(r"\w+", unescape(document)))
        assert _without_blanks(markup_and_words(again)) == _without_blanks(markup_and_words(document)), document


def _without_blanks(found: list[str]) -> str:
    return "".join("".join(found).split())
