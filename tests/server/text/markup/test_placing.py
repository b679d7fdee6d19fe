"""Marks in translations with hand-made attention; `test_placing_random.py` has random ones."""

import html
from collections.abc import Sequence

import numpy as np
import pytest

from server.text.alignment import WordWeights
from server.text.markup.document import Mark
from server.text.markup.placing import place_marks
from server.text.markup.shares import Words

CODE = "\U000f0000"


def weights(source: str, target: str, links: Sequence[int]) -> WordWeights:
    """Each word of the translation looks at one of the source, or at none (-1)."""
    known = [list(zip(words.begins, words.ends, strict=True)) for words in (Words(source), Words(target))]
    attention = np.full((len(known[1]), len(known[0])), 0.01, np.float32)
    for row, column in enumerate(links):
        if column >= 0:
            attention[row, column] = 0.9
    return WordWeights(known[0], known[1], attention)


def around(source: str, *parts: str) -> list[Mark]:
    """A mark around each part: <0>, <1>, ..."""
    begins = [source.index(part) for part in parts]
    return [
        Mark(begin, begin + len(part), f"<{index}>", f"</{index}>")
        for index, (begin, part) in enumerate(zip(begins, parts, strict=True))
    ]


def place(marks: Sequence[Mark], source: str, target: str, links: Sequence[int]) -> str:
    return place_marks(marks, source, target, weights(source, target, links), html.escape)


def around_part(source: str, part: str, target: str, links: Sequence[int]) -> str:
    return place(around(source, part), source, target, links)


def test_a_mark_goes_with_its_words() -> None:
    found = around_part("a red house there", "red house", "dort ein rotes Haus", [3, 0, 1, 2])

    assert found == "dort ein <0>rotes Haus</0>"


def test_texts_are_escaped_and_tags_are_not() -> None:
    assert around_part("you & me", "me", "ich & du", [2, 1, 0]) == "<0>ich</0> &amp; du"


def test_inner_marks_stay_within_outer_ones() -> None:
    source = "one two three"

    found = place(around(source, "one two", "two"), source, "zwei drei eins", [1, 2, 0])

    assert found == "<0><1>zwei</1> drei eins</0>"


def test_the_surest_of_siblings_chooses_first() -> None:
    words = WordWeights([(0, 3), (4, 7)], [(0, 4)], np.array([[0.45, 0.55]], np.float32))

    found = place_marks(around("one two", "one", "two"), "one two", "eins", words, html.escape)

    assert found == "<0></0><1>eins</1>"


def test_a_mark_round_everything_needs_no_alignment() -> None:
    nothing = [-1, -1, -1]
    source = "One two."

    assert place(around(source, source, source), source, "Eins zwei!", nothing) == "<0><1>Eins zwei!</1></0>"
    assert around_part(source, "One two", "Eins zwei.", nothing) == "<0>Eins zwei</0>."


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("Yes", "<0>Ja</0>, mein Herr."),
        ("Yes,", "<0>Ja,</0> mein Herr."),
        ("sir.", "Ja, <0>mein Herr.</0>"),
        ("sir", "Ja, <0>mein Herr</0>."),
        (",", "Ja<0>,</0> mein Herr."),
    ],
)
def test_punctuation_is_at_an_end_only_if_it_is_in_the_source(part: str, expected: str) -> None:
    assert around_part("Yes, sir.", part, "Ja, mein Herr.", [0, 1, 2, 2, 3]) == expected


def test_words_that_look_at_punctuation_do_not_drag_a_mark_onto_it() -> None:
    assert "<0></0>" in around_part("No, go.", "go", "Nein, geh.", [0, 2, 0, 2])


def test_a_mark_of_a_word_that_is_not_translated_is_empty() -> None:
    assert around_part("go right home", "right", "geh heim", [0, 2]) == "geh <0></0>heim"


def test_a_point_keeps_to_the_side_where_it_touches() -> None:
    source, target, links = "one two three", "eins zwei drei", [0, 1, 2]

    for position, expected in ((0, "<i>eins zwei drei"), (7, "eins zwei<i> drei"), (8, "eins zwei <i>drei")):
        assert place([Mark(position, position, "<i>", "")], source, target, links) == expected
    assert place([Mark(13, 13, "<i>", "")], source, target, links) == "eins zwei drei<i>"


def test_a_point_stands_outside_of_marks_that_it_stood_outside_of() -> None:
    attention = np.array([[0.55, 0.45, 0.0], [0.0, 0.5, 0.5]], np.float32)
    words = WordWeights([(0, 1), (2, 3), (4, 5)], [(0, 1), (2, 3)], attention)
    marks = [Mark(1, 1, "<i>", ""), *around("a b c", "b")]

    assert place_marks(marks[:1], "a b c", "x y", words, html.escape) == "x<i> y"
    assert place_marks(marks, "a b c", "x y", words, html.escape) == "<i><0>x y</0>"


def test_a_point_stands_within_marks_that_it_stood_within() -> None:
    marks = [*around("a b c", "a b"), Mark(2, 2, "<i>", "")]

    assert place(marks, "a b c", "x y z", [0, 0, 2]) == "<0>x y<i></0> z"


def test_points_of_one_place_keep_their_order() -> None:
    source = "one two"
    marks = [Mark(3, 3, f"<{index}>", "") for index in range(4)]

    assert place(marks, source, "zwei eins", [1, 0]).count("<0><1><2><3>") == 1


def test_elements_that_begin_or_end_elsewhere_reach_to_that_end() -> None:
    source, target, links = "One two, three four.", "Drei, eins und zwei vier.", [3, 2, 0, 0, 1, 4, 5]

    assert place([Mark(9, 20, "<b>", "")], source, "Eins zwei, drei vier.", range(6)) == "Eins zwei, <b>drei vier."
    assert place([Mark(0, 7, "", "</b>")], source, "Eins zwei, drei vier.", range(6)) == "Eins zwei</b>, drei vier."
    both = [Mark(0, 7, "", "</b>"), Mark(9, 20, "<i>", "")]
    assert place(both, source, target, links) == "Drei, eins und zwei</b> <i>vier."


def test_what_follows_an_element_that_began_elsewhere_does_not_get_into_it() -> None:
    marks = [Mark(0, 3, "", "</b>"), Mark(4, 4, "<br>", "")]
    words = WordWeights([(0, 3), (3, 4)], [(0, 4), (4, 5)], np.zeros((2, 2), np.float32))

    assert place_marks(marks, "One.", "Eins.", words, html.escape) == "Eins</b><br>."


def test_an_element_round_the_whole_sentence_that_ends_elsewhere_opens_at_its_beginning() -> None:
    marks = [Mark(0, 4, "<b>", ""), Mark(0, 4, "", "</i>"), Mark(4, 4, "<br>", "")]

    assert place(marks, "One.", "Das eine.", [0, 0, 1]) == "<b>Das eine.</i><br>"


def test_a_mark_within_a_word_takes_the_word() -> None:
    marks = [Mark(0, 2, "<a>", "</a>"), Mark(2, 4, "<b>", "</b>"), Mark(4, 8, "<c>", "</c>")]

    assert place(marks, "word two", "Wort zwei", [0, 1]) == "<a>Wort</a><b></b> <c>zwei</c>"


def test_if_nothing_was_translated_marks_stand_where_they_stood() -> None:
    source = "a wo<rd, or two"
    marks = [Mark(3, 5, "<b>", "</b>"), Mark(4, 4, "<i>", ""), Mark(9, 15, "<u>", "")]

    assert place_marks(marks, source, source, None, html.escape) == "a w<b>o<i>&lt;</b>rd, <u>or two"


def test_a_mark_stands_round_its_stand_in_whatever_the_attention_says() -> None:
    source, target = f"press {CODE} now please", f"bitte jetzt {CODE} drücken"
    links = [3, 2, 0, 0]

    assert around_part(source, f"{CODE} now", target, links) == f"bitte <0>jetzt {CODE}</0> drücken"
    assert around_part(source, f"press {CODE}", target, [-1] * 4) == f"bitte jetzt <0>{CODE}</0> drücken"
    assert CODE not in around_part(source, "now please", target, links).split("<0>")[1].split("</0>")[0]


def test_a_stand_in_that_the_network_was_not_shown_counts() -> None:
    source, target = f"press {CODE}", f"drücke {CODE}"
    words = WordWeights([(0, 5)], [(0, 6)], np.array([[0.9]], np.float32))

    assert place_marks(around(source, CODE), source, target, words, html.escape) == f"drücke <0>{CODE}</0>"
    assert place_marks(around(source, CODE), source, target, None, html.escape) == f"drücke <0>{CODE}</0>"


def test_without_attention_marks_are_placed_by_position() -> None:
    source, target = "aaaa bbbb cccc dddd", "eeee ffff gggg hhhh"

    assert place_marks(around(source, "bbbb cccc"), source, target, None, html.escape) == "eeee <0>ffff gggg</0> hhhh"


def test_a_text_without_words_has_all_marks() -> None:
    marks = around("one two", "one", "two")

    for words in (None, weights("one two", "", [])):
        assert place_marks(marks, "one two", "", words, html.escape) == "<0></0><1></1>"
        assert place_marks(marks, "one two", "…", words, html.escape).replace("…", "") == "<0></0><1></1>"


def test_marks_of_any_depth_are_placed() -> None:
    source, target = "one two", "zwei eins"
    marks = [Mark(4, 7, "<b>", "</b>")] * 50_000

    found = place(marks, source, target, [1, 0])

    assert found == "<b>" * 50_000 + "zwei" + "</b>" * 50_000 + " eins"


def test_more_words_than_a_sentence_has_are_placed_by_position() -> None:
    source, target = " ".join(["ab"] * 3000), " ".join(["cd"] * 3000)
    marks = [Mark(3 * index, 3 * index + 2, "<b>", "</b>") for index in range(3000)]

    assert place_marks(marks, source, target, None, html.escape) == " ".join(["<b>cd</b>"] * 3000)


def test_emphasis_of_markdown_without_a_text_is_left_out() -> None:
    marks = [Mark(2, 8, "**", "**"), Mark(4, 8, "<b>", "</b>")]

    assert place_marks(marks, "A of it", "", weights("A of it", "", []), html.escape) == "<b></b>"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("1st of May", "1. Mai", "1<sup>.</sup> Mai"),
        ("1st of May", "1er mai", "1<sup>er</sup> mai"),
        ("1st of May", "erster Mai", "<sup>erster</sup> Mai"),
        ("1st of May", "1 maj", "1<sup></sup> maj"),
    ],
)
def test_the_ending_of_an_ordinal_stays_behind_its_number(source: str, target: str, expected: str) -> None:
    marks = [Mark(1, 3, "<sup>", "</sup>")]
    words = WordWeights(
        [(0, 3), (7, 10)],
        [(0, target.index(" ") - ("." in target)), (target.index(" ") + 1, len(target))],
        np.eye(2, dtype=np.float32),
    )

    assert place_marks(marks, source, target, words, html.escape) == expected
