"""Texts that say one word again and again."""

import pytest

from server.text.layout import Syntax
from server.text.repeats import part_repeats


def test_each_word_is_a_piece() -> None:
    pieces = list(part_repeats(" No no, no! "))

    assert pieces == [" ", "No", " ", "no", ", ", "no", "! "]
    assert [isinstance(piece, Syntax) for piece in pieces] == [False, False, False, False, True, False, True]


@pytest.mark.parametrize("line", ["la la la la", "Ha-ha-ha!", "hmm, hmm, hmm"])
def test_sounds_are_syntax(line: str) -> None:
    assert [(piece, isinstance(piece, Syntax)) for piece in part_repeats(line)] == [(line, True)]


@pytest.mark.parametrize(
    "line", ["", "no no", "Very, very, very good.", "no now no", "no no nowhere", "1 1 1", " ".join(["no"] * 65)]
)
def test_other_lines_are_one_piece(line: str) -> None:
    assert list(part_repeats(line)) == [line]
