"""Tests of what belongs to a character; `test_characters` has whole sentences."""

import pytest

from server.text.runs import Run, add_run, grown_run, has_words, script_of


@pytest.mark.parametrize(
    ("text", "index", "expected"),
    [
        ("see Łódź now", 4, "Łódź"),
        ("it is ₹500 now", 6, "₹500"),
        ("5 km² of it", 4, "km²"),
        ("CO₂ is", 2, "CO₂"),
        ("a ☃ b", 2, "☃"),
        ("un☃wise", 2, "un☃wise"),
    ],
)
def test_a_run_is_what_belongs_together(text: str, index: int, expected: str) -> None:
    run = grown_run(text, index, {text[index]})

    assert text[run.start : run.end] == expected


def test_foreign_words_with_nothing_but_marks_between_are_one_run() -> None:
    text = "Привет, мир → 5µ"
    runs: list[Run] = []
    for run in (
        Run(0, 6, is_word=True),
        Run(8, 11, is_word=True),
        Run(12, 13, is_word=False),
        Run(14, 16, is_word=True),
    ):
        add_run(runs, run, text)

    assert [(run.start, run.end) for run in runs] == [(0, 11), (12, 13), (14, 16)]


@pytest.mark.parametrize(
    ("letter", "script"), [("a", "LATIN"), ("µ", "LATIN"), ("м", "CYRILLIC"), ("你", "CJK"), ("\ue000", "")]
)
def test_a_letter_has_a_script(letter: str, script: str) -> None:
    assert script_of(letter) == script


@pytest.mark.parametrize(("text", "expected"), [("a", True), ("5", True), ("½", False), ("→ .", False), ("", False)])
def test_letters_and_plain_digits_are_words(text: str, expected: bool) -> None:
    assert has_words(text) is expected
