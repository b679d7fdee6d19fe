import pytest

from server.text.ends import cut_ends, marks_at_ends
from server.text.runs import Run


def ends(text: str) -> tuple[str, str, str]:
    """What is cut off the beginning, what stays, and what is cut off the end; marks at the ends are the only parts."""
    runs = sorted(Run(*span, is_word=False) for span in marks_at_ends(text))
    start, end, _ = cut_ends(text, runs)
    return text[:start], text[start:end], text[end:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Buy milk.", ("", "Buy milk.", "")),
        ("- Buy milk -", ("- ", "Buy milk", " -")),
        ("** - Go on \u2026", ("** - ", "Go on", " \u2026")),
        ("Go on  \u2026  <<", ("", "Go on", "  \u2026  <<")),
        ("[LAUGHS]", ("[", "LAUGHS", "]")),
        ("(He laughs.)", ("(", "He laughs.", ")")),
        ("- (laughs)", ("- (", "laughs", ")")),
        ("(a) or (b)", ("", "(a) or (b)", "")),
        ("(a (b))", ("", "(a (b))", "")),
        ("(laughs]", ("", "(laughs]", "")),
        ("a) Read it", ("a) ", "Read it", "")),
        ("(12) Read it", ("(12) ", "Read it", "")),
        ("i. First step", ("i. ", "First step", "")),
        ("(2) is wrong", ("", "(2) is wrong", "")),
        ("a. D. ist er nicht", ("", "a. D. ist er nicht", "")),
        ("z. B. heute", ("", "z. B. heute", "")),
        ("[LAUGHS] Hello.", ("", "[LAUGHS] Hello.", "")),
        ("-How are you?", ("-", "How are you?", "")),
        ("\u2013I know.", ("\u2013", "I know.", "")),
        ("-v is an option", ("", "-v is an option", "")),
        ("-DNDEBUG is set", ("", "-DNDEBUG is set", "")),
        ("-5 degrees", ("", "-5 degrees", "")),
        ("()", ("(", "", ")")),
        ("", ("", "", "")),
    ],
)
def test_marks_and_brackets_round_a_sentence_are_cut_off(text: str, expected: tuple[str, str, str]) -> None:
    assert ends(text) == expected


@pytest.mark.parametrize(
    ("text", "run", "expected"),
    [
        ("[NAME]", Run(0, 6, is_word=True), (0, 6)),
        ("[x y]", Run(1, 2, is_word=True), (1, 4)),
        ("{0}The end", Run(0, 3, is_word=True), (3, 10)),
        ("{0} the end", Run(0, 3, is_word=True), (0, 11)),
        ("{0} The end", Run(0, 3, is_word=True), (4, 11)),
        ("12 The end", Run(0, 2, is_word=True), (0, 10)),
    ],
)
def test_no_part_is_torn_and_words_stay(text: str, run: Run, expected: tuple[int, int]) -> None:
    start, end, left = cut_ends(text, [run])

    assert (start, end) == expected
    assert left == ([run] if run.start >= start else [])
