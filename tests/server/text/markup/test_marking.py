"""Sentences of documents of hand-made blocks: which tags move with a sentence, and which stay between two."""

import html
import re

import pytest

from server.text.markup.document import Block, Document, Mark, Tag
from server.text.markup.marking import split_document
from server.text.sentences import split_text
from server.text.source import SplitText


def document(source: str) -> Document:
    """Returns a document of one block; `<x>` and `</x>` are tags, `<x/>` is void."""
    text = re.sub(r"<[^>]*>", "", source)
    tags: list[Tag] = []
    opened: list[int] = []
    taken = 0
    for match in re.finditer(r"<(/?)[^>/]*(/?)>", source):
        position = match.start() - taken
        taken += len(match[0])
        partner = opened.pop() if match[1] and opened else None
        if partner is not None:
            first = tags[partner]
            tags[partner] = Tag(first.position, first.source, len(tags))
        if not match[1] and not match[2]:
            opened.append(len(tags))
        tags.append(Tag(position, match[0], partner, is_end=bool(match[1]), is_void=bool(match[2])))
    return Document("<p>", (Block(text, "</p>", html.escape, tuple(tags)),))


def split(text: str, num_before: int) -> SplitText:
    assert num_before == 0
    return split_text(text, "en", lambda shown: (*range(len(shown.split())), 2), 64)


def marks_of(source: str) -> tuple[list[str], list[list[Mark]]]:
    """Returns what leads and separates the sentences of a document, and the marks of each."""
    found = split_document(document(source), split)
    marks = [list(sentence.markup.marks) for sentence in found.sentences if sentence.markup is not None]
    return [found.leading, *(sentence.separator for sentence in found.sentences)], marks


def test_a_tag_within_a_sentence_belongs_to_it() -> None:
    assert marks_of("A <b>red</b> dog.") == (["<p>", "</p>"], [[Mark(2, 5, "<b>", "</b>")]])


@pytest.mark.parametrize("source", ["<b>A dog.</b>", "<b><i>A dog.</i></b>", "<img/><b>A dog.<br/></b>"])
def test_tags_round_a_whole_sentence_stay(source: str) -> None:
    before, behind = source.split("A dog.")

    assert marks_of(source) == ([f"<p>{before}", f"{behind}</p>"], [[]])


def test_an_element_of_a_sentences_first_words_moves_with_them() -> None:
    assert marks_of("<b>Red</b> dogs run.") == (["<p>", "</p>"], [[Mark(0, 3, "<b>", "</b>")]])


def test_an_element_that_goes_on_in_the_next_sentence_reaches_to_the_end_and_from_the_start() -> None:
    gaps, marks = marks_of("A <b>red dog. A cat</b> runs.")

    assert gaps == ["<p>", " ", "</p>"]
    assert marks == [[Mark(2, 10, "<b>", "")], [Mark(0, 5, "", "</b>")]]


def test_a_tag_between_two_sentences_stays_between_them() -> None:
    assert marks_of("A dog. <b>A cat.</b> <img/>A bird.")[0] == ["<p>", " <b>", "</b> <img/>", "</p>"]


def test_an_element_that_ends_between_two_sentences_ends_there() -> None:
    gaps, marks = marks_of("A <b>red dog. A cat.</b> A bird.")

    assert gaps == ["<p>", " ", "</b> ", "</p>"]
    assert marks == [[Mark(2, 10, "<b>", "")], [], []]


def test_a_void_tag_at_an_end_of_an_element_is_written_with_its_tag() -> None:
    gaps, marks = marks_of("<b><img/>Red</b> dogs <i>run.<br/></i>")

    assert gaps == ["<p>", "</p>"]
    assert marks == [[Mark(0, 3, "<b><img/>", "</b>"), Mark(9, 13, "<i>", "<br/></i>")]]


def test_elements_at_the_end_of_another_are_within_it() -> None:
    assert marks_of("A <b>red <i>dog<br/></i></b> runs.")[1] == [
        [Mark(2, 9, "<b>", "</b>"), Mark(6, 9, "<i>", "<br/></i>")]
    ]


def test_an_element_without_text_is_a_point() -> None:
    assert marks_of("A <a><img/></a>dog.")[1] == [[Mark(2, 2, "<a><img/>", "</a>")]]


def test_of_elements_that_began_before_the_last_to_end_is_the_outer_one() -> None:
    gaps, marks = marks_of("<i>A dog. <b>A red</b> cat</i> runs.")

    assert gaps == ["<p><i>", " ", "</p>"]
    assert marks == [[], [Mark(0, 9, "", "</i>"), Mark(0, 5, "<b>", "</b>")]]


def test_a_tag_without_a_partner_reaches_to_the_end_of_its_sentence() -> None:
    assert marks_of("A <b>red dog.")[1] == [[Mark(2, 10, "<b>", "")]]
    assert marks_of("A red</b> dog.")[1] == [[Mark(0, 5, "", "</b>")]]


def test_everything_that_is_no_sentence_is_escaped() -> None:
    two = Document("", (Block("A & b.", "<hr>", html.escape), Block("1 < 2", "", html.escape)))
    found = split_document(
        two, lambda text, _: split_text(text, "en", lambda shown: (*range(len(shown.split())), 2), 64)
    )

    texts = [
        sentence.markup.write(sentence.text, sentence.text, None) for sentence in found.sentences if sentence.markup
    ]
    assert found.join(texts) == "A &amp; b.<hr>1 &lt; 2"


def test_a_sentence_has_what_its_stand_ins_stand_for() -> None:
    code = "\U000f0000"
    kept = Document("", (Block(f"Press {code} now. Go.", "", html.escape, (), {code: "<kbd>F1</kbd>"}),))

    first, second = split_document(kept, split).sentences

    assert first.markup is not None
    assert second.markup is not None
    assert first.markup.write(first.text, f"{code} jetzt.", None) == "<kbd>F1</kbd> jetzt."
    assert second.markup.kept == {}


def test_a_text_in_a_tag_that_moves_stands_behind_all_sentences() -> None:
    title, alt, code = "\U000f0000", "\U000f0001", "\U000f0002"
    tags = (Tag(2, f"<b title='{title}'>", 1), Tag(5, "</b>", 0, is_end=True))
    values = {title: Block("Our cat. It runs.", "", html.escape), alt: Block("A & b", "", html.escape)}
    first = Block(f"A red {code}.", "<hr>", html.escape, tags, {code: f"<img alt='{alt}'>"}, values)
    found = split_document(
        Document("", (first, Block("End.", "", html.escape))),
        lambda text, _: split_text(text, "en", lambda shown: (*range(len(shown.split())), 2), 64),
    )

    assert [sentence.text for sentence in found.sentences] == [first.text, "End.", "Our cat.", "It runs.", "A & b"]
    assert (found.num_shown, found.homes) == (2, (0, 0, 0))
    markup = found.sentences[0].markup
    assert markup is not None
    assert {key: text.sentences for key, text in markup.texts.items()} == {title: range(2), alt: range(2, 3)}
    assert markup.texts[alt].source == "A &amp; b"


def test_a_text_in_a_tag_that_stays_has_its_place_in_the_order() -> None:
    title = "\U000f0000"
    tags = (Tag(7, f"<b title='{title}'>", 1), Tag(13, "</b>", 0, is_end=True))
    block = Block("A dog. A cat.", "<hr>", html.escape, tags, {}, {title: Block("Our cat", "", html.escape)})
    found = split_document(
        Document("<p>", (block,)),
        lambda text, _: split_text(text, "en", lambda shown: (*range(len(shown.split())), 2), 64),
    )

    assert [(each.text, each.separator) for each in found.sentences] == [
        ("A dog.", " <b title='"),
        ("Our cat", "'>"),
        ("A cat.", "</b><hr>"),
    ]
    assert found.homes == ()


@pytest.mark.parametrize("source", ["A <b>red</b> dog " * 6400, "A <b>red</b> dog. " * 6400, "<b>" * 6400 + "A dog."])
def test_a_long_block_lets_its_watch_look_again_and_again(source: str) -> None:
    looked: list[int] = []

    def look() -> None:
        looked.append(1)

    split_document(document(source), lambda text, _: split_text(text, "en", lambda shown: (1, 2), 1 << 20), look)
    assert len(looked) >= 3 * 6400 // 64  # at least in three of the loops over its tags


def test_a_tag_whose_element_would_cross_another_is_a_point() -> None:
    tags = (Tag(2, "<b>", 2), Tag(2, "<i>"), Tag(5, "</b>", 0, is_end=True), Tag(8, "<u>"), Tag(9, "</i>", is_end=True))
    found = split_document(Document("", (Block("A red dog runs.", "", html.escape, tags),)), split)

    marks = found.sentences[0].markup
    assert marks is not None
    assert marks.marks == (Mark(2, 5, "<b><i>", "</b>"), Mark(8, 15, "<u>", ""), Mark(9, 9, "</i>", ""))
    assert marks.write("A red dog runs.", "A red dog runs.", None) == "A <b><i>red</b> do<u>g</i> runs."


def test_a_void_tag_before_an_end_without_a_beginning_stays_before_it() -> None:
    tags = (Tag(5, "<!-- -->", is_void=True), Tag(5, "</i>", is_end=True))
    found = split_document(Document("", (Block("A red dog runs.", "", html.escape, tags),)), split)

    marks = found.sentences[0].markup
    assert marks is not None
    assert marks.marks == (Mark(0, 5, "", "<!-- --></i>"),)
