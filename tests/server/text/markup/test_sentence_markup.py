"""The markup of one sentence, written round translations."""

import html

from server.text.markup.document import Mark
from server.text.markup.sentence_markup import SentenceMarkup, TagText
from server.text.masked import KeptPart, Placement

CODE = "\U000f0000"


def test_a_translation_is_escaped_and_has_its_tags() -> None:
    markup = SentenceMarkup((Mark(0, 1, "<b>", "</b>"),), {}, html.escape)

    assert markup.write("A & B", "A & B", None) == "<b>A</b> &amp; B"


def test_stand_ins_become_what_they_stand_for_and_are_not_escaped() -> None:
    markup = SentenceMarkup((), {CODE: "<code>a & b</code>"}, html.escape)

    assert markup.write(f"A < {CODE}", f"A < {CODE}", None) == "A &lt; <code>a & b</code>"


def test_a_private_character_of_the_document_itself_stays() -> None:
    assert SentenceMarkup((), {}, html.escape).write(CODE, CODE, None) == CODE


def test_texts_in_tags_have_their_translations() -> None:
    title, alt = "\U000f0001", "\U000f0002"
    texts = {title: TagText("One", "", range(1)), alt: TagText("Two", "", range(1, 2))}
    marks = (Mark(0, 1, f'<b title="{title}">', "</b>"),)
    markup = SentenceMarkup(marks, {CODE: f'<img alt="{alt}">'}, html.escape, texts)

    written = markup.write(f"A {CODE}", f"A {CODE}", None, {title: "Eins", alt: "Zwei"})

    assert written == '<b title="Eins">A</b> <img alt="Zwei">'
    assert markup.write(f"A {CODE}", f"A {CODE}", None) == '<b title="One">A</b> <img alt="Two">'
    assert markup.unkept_parts([KeptPart(CODE, Placement.BY_MODEL)])[0].text == '<img alt="Two">'


def test_kept_parts_are_told_as_they_stand_in_the_document() -> None:
    markup = SentenceMarkup((), {CODE: "<kbd>F1</kbd>"}, html.escape)

    parts = markup.unkept_parts([KeptPart(CODE, Placement.BY_MODEL), KeptPart("5", Placement.MISSING)])

    assert parts == (KeptPart("<kbd>F1</kbd>", Placement.BY_MODEL), KeptPart("5", Placement.MISSING))
