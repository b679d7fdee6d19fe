"""Texts that say one word again and again."""

import pytest

from server.text.layout import Syntax
from server.text.masking import Masker
from server.text.repeats import part_repeats, sounds_end


def test_each_word_is_a_piece() -> None:
    pieces = list(part_repeats(" No no, no! "))

    assert pieces == [" ", "No", " ", "no", ", ", "no", "! "]
    assert [isinstance(piece, Syntax) for piece in pieces] == [False, False, False, False, True, False, True]


@pytest.mark.parametrize(
    ("text", "sounds"),
    [
        ("la la la la", "la la la la"),
        ("Ha-ha-ha!", "Ha-ha-ha"),
        ("hmm, hmm, hmm", "hmm, hmm, hmm"),
        ("Tra la la, ich singe.", "Tra la la"),
        ("La la la, I can't hear you.", "La la la"),
        ("Na na, it is late.", ""),
        ("He had a hat.", ""),
        ("HA HA HA", "HA HA HA"),
        ("no no no", ""),
    ],
)
def test_sounds_that_a_sentence_begins_with_are_found(text: str, sounds: str) -> None:
    assert text[: sounds_end(text)] == sounds
    assert [part.text for part in Masker(carriers=(("%1",),)).mask(text).parts] == [sounds] * bool(sounds)
    if sounds:
        assert list(part_repeats(text)) == [text]


@pytest.mark.parametrize(
    "line", ["", "no no", "Very, very, very good.", "no now no", "no no nowhere", "1 1 1", " ".join(["no"] * 65)]
)
def test_other_lines_are_one_piece(line: str) -> None:
    assert list(part_repeats(line)) == [line]
