"""Hand-made texts with marks, each with the tags that it has."""

import time
import timeit

import pytest

from server.text.markup.builder import Builder
from server.text.markup.document import Block
from server.text.markup.html import read_html
from server.text.markup.markdown import escape
from server.text.markup.markdown_inline import normalized, read_inline
from tests.server.text.markup.identity import identity


def read(text: str, labels: frozenset[str] = frozenset()) -> Block:
    builder = Builder(text, escape)
    builder.stay("")
    read_inline(text, labels, builder)
    [block] = builder.finish().blocks
    return block


@pytest.mark.parametrize(
    ("text", "expected", "tags"),
    [
        ("a *b* c", "a b c", [("*", 1), ("*", 0)]),
        ("a **b _c_** d", "a b c d", [("**", 3), ("_", 2), ("_", 1), ("**", 0)]),
        ("a ~~b~~ c", "a b c", [("~~", 1), ("~~", 0)]),
        ("2 * 3 * 4 a_b_c *d", "2 * 3 * 4 a_b_c *d", []),
        ("a *b _c* d_ e", "a b _c d_ e", [("*", 1), ("*", 0)]),
        ("a [b](x 'y z') c", "a b c", [("[", 1), ("](x 'y z')", 0)]),
        ("a ![b *c*](x(y)) *d*", "a \U000f0000 d", [("*", 1), ("*", 0)]),
        ("a $b_1 + c_2$ costs $5, $$x^2$$", "a \U000f0000 costs $5, \U000f0001", []),
        ("the $i*j*k$th row, 设$x$为", "the \U000f0000th row, 设\U000f0001为", []),
        ("in **${HOME}/a**, else in /run/$UID", "in ${HOME}/a, else in /run/$UID", [("**", 1), ("**", 0)]),
        ("a [b *c*][x] d", "a b c d", [("[", 3), ("*", 2), ("*", 1), ("][x]", 0)]),
        ("a [X] b [X][] c", "a X b X c", [("[", 1), ("][X]", 0), ("[", 3), ("][X]", 2)]),
        ("a *[b* c](x) d", "a *b* c d", [("[", 1), ("](x)", 0)]),
        ("a [b *c](x) d* e", "a b *c d* e", [("[", 1), ("](x)", 0)]),
        (
            "a **b _[c_** d](x) e_ f**",
            "a b c_** d e f",
            [("**", 5), ("_", 4), ("[", 3), ("](x)", 2), ("_", 1), ("**", 0)],
        ),
        ("a ![b [*c* d](x) *e](y) f*", "a \U000f0000 f*", []),
        ("a [b] [c", "a [b] [c", []),
        ("a <b>c</b> d<img>e <wbr/> f", "a c de  f", [("<b>", 1), ("</b>", 0), ("<img>", None), ("<wbr/>", None)]),
        ("a [b <b>c](x) d</b> e", "a b c d e", [("[", 1), ("](x)", 0), ("<b>", 3), ("</b>", 2)]),
        ("a <b>b [c</b> d](x) e", "a b c d e", [("<b>", 1), ("</b>", 0), ("[", 3), ("](x)", 2)]),
        ("a [<b>c</b>](x) d", "a c d", [("[", 3), ("<b>", 2), ("</b>", 1), ("](x)", 0)]),
        ("a ![<b>](x) <b>c</b> d", "a \U000f0000 c d", [("<b>", 1), ("</b>", 0)]),
        ("a <kbd class=x>b</kbd> H<sub>2</sub>O", "a \U000f0000 H\U000f0001O", []),
        ("a b[^1] c", "a b c", [("[^1]", None)]),
        ("a <!-- b --> c <!-- d", "a  c <!-- d", [("<!-- b -->", None)]),
        ("a \\*b\\* &lt; &copy c &#x41;", "a *b* < &copy c A", []),
        ("a ``b` c", "a ``b` c", []),
        ("a < b & c", "a < b & c", []),
        ("a [Split<T, P>: b](x) c <T: d>", "a Split<T, P>: b c <T: d>", [("[", 1), ("](x)", 0)]),
        ("a [b<T> c <i>d</i>](x) e", "a b c d e", [("[", 4), ("<T>", None), ("<i>", 3), ("</i>", 2), ("](x)", 0)]),
        ("a <b c={{d: 'e', f: 0}}>g</b>", "a g", [("<b c={{d: 'e', f: 0}}>", 1), ("</b>", 0)]),
        ("a <a href=https://b.c/@1.5,2>d</a>", "a d", [("<a href=https://b.c/@1.5,2>", 1), ("</a>", 0)]),
        ('a <b c={"d {e} f"}>g</b>', "a g", [('<b c={"d {e} f"}>', 1), ("</b>", 0)]),
        ("a <K extends A, V = {}> b", "a <K extends A, V = {}> b", []),
        ("a <b c=1,2 @d='e, f' g/>h", "a h", [("<b c=1,2 @d='e, f' g/>", None)]),
    ],
)
def test_marks_are_tags(text: str, expected: str, tags: list[tuple[str, int | None]]) -> None:
    block = read(text, frozenset({"x"}))

    assert block.text == expected
    assert [(tag.source, tag.partner) for tag in block.tags] == tags


@pytest.mark.parametrize(
    ("text", "expected", "kept"),
    [
        (
            'a <span translate="no">b <i>c</i></span> d</span>',
            "a \U000f0000 d",
            ['<span translate="no">b <i>c</i></span>'],
        ),
        (
            "a *<b class='x notranslate'>b<b>c<b/></b></B>* d",
            "a \U000f0000 d",
            ["<b class='x notranslate'>b<b>c<b/></b></B>"],
        ),
        ("a [b <i translate=NO>c](x)</i> d", "a [b \U000f0000 d", ["<i translate=NO>c](x)</i>"]),
        ("a <i translate=no>b <i translate=yes>c", "a \U000f0000", ["<i translate=no>b <i translate=yes>c"]),
        ("a <embed translate=no> b", "a  b", []),
        ("a <i translate=no>b `<i>` \\`</i> c`", "a \U000f0000 c`", ["<i translate=no>b `<i>` \\`</i>"]),
        ("a \\<i translate=no> b", "a <i translate=no> b", []),
        ("a `<i translate=no>` b </i> <img translate=no> c", "a \U000f0000 b   c", ["`<i translate=no>`"]),
    ],
)
def test_what_is_not_to_be_translated_has_a_stand_in(text: str, expected: str, kept: list[str]) -> None:
    block = read(text)

    assert block.text == expected
    assert list(block.kept.values()) == kept


def test_controls_end_a_sentence_as_in_html() -> None:
    text = "Press <button>OK</button> to go on."
    builder = Builder("", escape)
    read_inline(text, frozenset(), builder)

    blocks = builder.finish().blocks
    assert (
        [block.text for block in blocks]
        == [block.text for block in read_html(text).blocks]
        == ["Press", "OK", "to go on."]
    )


def test_a_block_that_is_not_to_be_translated_ends_a_sentence() -> None:
    builder = Builder("", escape)
    read_inline("a <p translate=no>b</p> c", frozenset(), builder)

    assert [block.text for block in builder.finish().blocks] == ["a", "c"]


def test_code_and_addresses_have_stand_ins() -> None:
    block = read("a ``b ` c`` d <http://x.y> e <a@b.c> f")

    assert block.text == "a \U000f0000 d \U000f0001 e \U000f0002 f"
    assert list(block.kept.values()) == ["``b ` c``", "<http://x.y>", "<a@b.c>"]


def test_labels_are_compared_without_case_and_white_space() -> None:
    assert normalized(" A\n b ") == normalized("a B")


@pytest.mark.parametrize("text", ["<b translate=no>" * 20_000, "<b translate=no>" * 20_000 + "</b>" * 20_000])
def test_many_elements_that_are_not_to_be_translated_come_back(text: str) -> None:
    builder = Builder("", escape)
    read_inline(f"a {text} c", frozenset(), builder)

    assert identity(builder.finish()) == f"a {text} c"


@pytest.mark.parametrize("text", ["[<b>" * 20_000 + "a" + "](x)" * 20_000, "[<b>a](x)" * 20_000, "[</b>a" * 20_000])
def test_many_tags_that_cross_links_come_back(text: str) -> None:
    builder = Builder(text, escape)
    builder.stay("")
    read_inline(text, frozenset(), builder)

    assert identity(builder.finish()).count("b>") == 20_000


def test_many_comments_without_an_end_are_text_in_linear_time() -> None:
    def seconds(num_comments: int) -> float:
        text = "a " + "<!-- " * num_comments + "b"
        assert read(text).text == text
        return min(timeit.repeat(lambda: read(text), timer=time.process_time, repeat=3, number=1))

    assert seconds(10_000) < 3 * seconds(5_000), "twice the text takes twice the time, and not four times"
