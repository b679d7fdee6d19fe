"""Shares of hand-made attention."""

import numpy as np

from server.text.markup.shares import Shares, Words


def test_a_text_has_its_known_words_and_all_others() -> None:
    words = Words("“Go, Mr. X!!!” 5 %", [(1, 3), (5, 8)])

    assert words.texts == ["“", "Go", ",", "Mr.", "X", "!!!", "”", "5", "%"]
    assert words.is_punctuation.tolist() == [True, False, True, False, False, True, True, False, True]


def test_what_a_known_part_of_a_run_of_marks_leaves_is_a_word() -> None:
    assert Words("a!!!", [(0, 1), (1, 2)]).texts == ["a", "!", "!!"]


def test_a_range_of_words_loses_the_punctuation_at_its_ends() -> None:
    words = Words("“Go, X!!!”")

    assert words.trimmed(0, 6) == (1, 4)
    assert words.trimmed(1, 3) == (1, 2)
    assert words.trimmed(4, 6) == (4, 6), "there is nothing else"
    assert words.trimmed(2, 2) == (2, 2)


def shares(source: str, target: str, weights: list[list[float]]) -> Shares:
    return Shares(all_known(source), all_known(target), np.array(weights, np.float32))


def all_known(text: str) -> Words:
    words = Words(text)
    return Words(text, list(zip(words.begins, words.ends, strict=True)))


def test_a_word_that_looks_at_its_neighbours_word_has_less_of_it() -> None:
    found = shares("red house", "the house", [[0.4, 0.6], [0.1, 0.9]]).of(1, 2)

    assert found[1] > 0.9
    assert found[0] < 0.6


def test_the_pronoun_of_a_request_goes_with_its_verb() -> None:
    added = shares("Click here", "Klicken Sie hier", [[0.8, 0.2], [0.4, 0.5], [0.1, 0.9]])
    own = shares("If you", "Wenn Sie da", [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])

    assert added.of(0, 1)[1] == added.of(0, 1)[0] > 0.9
    assert own.of(1, 2)[1] > 0.6


def test_a_word_without_attention_has_no_share() -> None:
    assert shares("red house", "the house", [[0.0, 0.0], [0.0, 1.0]]).of(0, 2).tolist() == [0.0, 1.0]


def test_a_gap_divides_best_where_the_attention_changes_sides() -> None:
    swapped = shares("a b c", "b c a", [[0, 1, 0], [0, 0, 1], [1, 0, 0]])

    assert swapped.divide(3).argmax() == 3
    assert swapped.divide(0).argmax() == 0
    assert swapped.divide(1)[3] == swapped.divide(1).max() - 1.0, "the last word pulls back"


def test_words_that_were_not_shown_go_to_their_equals() -> None:
    sources, targets = Words("see 🙂 there", [(0, 3), (6, 11)]), Words("dort 🙂 sieh", [(0, 4), (7, 11)])

    assert Shares(sources, targets, np.array([[0, 1], [1, 0]], np.float32)).of(1, 2).tolist() == [0.0, 1.0, 0.0]


def test_a_stand_in_binds_its_words_whatever_the_attention_says() -> None:
    found = shares("see \U000f0000 there", "dort \U000f0000 sieh", [[0, 1, 0], [0, 0, 1], [1, 0, 0]])

    assert found.gains(1, 2).argmax() == 1
    assert found.gains(1, 2)[0] < 0.0, "what looked at it does so no more"
    assert found.gains(0, 1)[1] < -100.0, "no other mark takes it"


def test_without_attention_words_go_to_those_at_their_place() -> None:
    found = Shares(Words("aaaa bbbb cccc"), Words("dddd eeee ffff"), None)

    assert np.stack([found.of(index, index + 1) for index in range(3)]).round(1).tolist() == np.eye(3).tolist()


def test_texts_without_words_have_no_shares() -> None:
    for attention in (None, np.zeros((0, 0), np.float32)):
        found = Shares(Words(" "), Words(""), attention)
        assert found.of(0, 0).tolist() == []
        assert found.divide(0).tolist() == [0.0]
