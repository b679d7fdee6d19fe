"""Tests of blocks that are made of hand-made pieces."""

import html

import pytest

from server.text.markup.builder import Builder, Value, unescape
from server.text.markup.document import Block, Tag
from tests.server.text.markup.identity import identity


def make_builder(text: str = "") -> Builder:
    return Builder(text, html.escape)


def test_pieces_become_blocks() -> None:
    builder = make_builder()
    builder.stay("# ")
    builder.add_text(" One &amp;", "One & ")
    builder.add_tag("[", "link", is_end=False)
    builder.add_text("two", "two")
    builder.add_tag("](x)", "link", is_end=True)
    builder.keep("`x`")
    builder.add_text(" ", " ")
    builder.stay("\n")
    document = builder.finish()

    tags = (Tag(6, "[", partner=1), Tag(9, "](x)", partner=0, is_end=True))
    assert document.leading == "#  "
    assert document.blocks == (Block("One & two\U000f0000", " \n", html.escape, tags, {"\U000f0000": "`x`"}),)
    assert identity(document) == "#  One &amp; [two](x)`x` \n"


def test_tags_at_the_ends_stay_outside_but_for_those_with_a_partner_inside() -> None:
    builder = make_builder()
    for source, name, is_end in [("<a>", "a", False), ("<b>", "b", False), ("<i>", "i", False)]:
        builder.add_tag(source, name, is_end)
    builder.add_text("  One", "  One")
    builder.add_tag("</i>", "i", is_end=True)
    builder.add_text(" two ", " two ")
    builder.add_tag("</b>", "b", is_end=True)
    builder.add_void("<img>")
    document = builder.finish()
    [block] = document.blocks

    assert (document.leading, block.text, block.behind) == ("<a><b>  ", "One two", " </b><img>")
    assert [(tag.position, tag.source) for tag in block.tags] == [(0, "<i>"), (3, "</i>")]


def test_a_block_without_a_letter_stays() -> None:
    builder = make_builder()
    builder.add_text("12", "12")
    builder.keep("<code>x</code>")

    document = builder.finish()

    assert (document.leading, document.blocks) == ("12<code>x</code>", ())


def test_values_of_tags_that_stay_outside_are_blocks() -> None:
    builder = make_builder()
    builder.stay("<p a='One &amp;'>", [Value(6, 15, str.upper)])
    builder.add_void("<i a=' Two\n two '>", [Value(6, 16, str.upper)])
    builder.add_text("Three ", "Three ")
    builder.add_void("<b a='Not'>", [Value(6, 9, str.upper)])
    builder.add_text(" four", " four")
    builder.add_tag("<u a='12' b='Five'>", "u", is_end=False, values=[Value(6, 8, str.upper), Value(13, 17, str.upper)])
    document = builder.finish()

    assert document.leading == "<p a='"
    assert [(block.text, block.behind) for block in document.blocks] == [
        ("One &", "'><i a=' "),
        ("Two two", " '>"),
        ("Three  four", "<u a='12' b='"),
        ("Five", "'>"),
    ]
    assert [block.escape("a<") for block in document.blocks] == ["A<", "A<", "a&lt;", "A<"]
    assert [tag.source for tag in document.blocks[2].tags] == ["<b a='\U000f0000'>"]
    assert [value.text for value in document.blocks[2].values.values()] == ["Not"]


def test_nothing_is_a_document() -> None:
    assert identity(make_builder().finish()) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("&lt;&#65;&#x42;&copy", "<AB©"),
        ("&#00000000000065", "A"),
        ("&#000000065;6", "A6"),
        ("&#12345678901;", "\ufffd"),
        ("&#" + "1" * 10_000 + ";", "\ufffd"),
    ],
)
def test_references_are_decoded(text: str, expected: str) -> None:
    assert unescape(text) == expected


def test_the_watch_looks_again_while_the_pieces_become_a_block() -> None:
    watched: list[int] = []
    builder = Builder("", html.escape, watched.append)
    for _ in range(6400):
        builder.count()
        builder.add_tag("<b>", "b", is_end=False)
        builder.add_text("One", "One")
    counted = len(watched)
    builder.finish()

    assert set(watched[counted:]) == {6400}
    assert len(watched) - counted >= 3 * 6400 // 64  # at least in three of the loops over its pieces
