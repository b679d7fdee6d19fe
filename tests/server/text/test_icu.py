"""Tests of what is text in an ICU message."""

import pytest

from server.text.icu import find_messages


def texts(text: str) -> list[list[str]]:
    return [[text[begin:end] for begin, end in spans] for _, spans in find_messages(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{count, plural, one {# message} other {# messages}}", [["# message", "# messages"]]),
        ("{kids, plural, zero{} other{Kids' seats: {kids}}}", [["", "Kids' seats: {kids}"]]),
        ("{n,selectordinal, offset:1 =0{a} few{b}}{g, select, x {c}}", [["a", "b"], ["c"]]),
        ("{g, select, a {my {n, plural, one {cat} other {cats}} sat} b {x}}", [["my ", "cat", "cats", " sat", "x"]]),
        ("{g, select, other {He '{'is'}' ''it'' {d, date, short}}}", [["He '{'is'}' ''it'' {d, date, short}"]]),
        ("{\n  n, plural,\n  one {a}\n  other {b}\n}", [["a", "b"]]),
        ("Hello {name}, {n, number}", []),
    ],
)
def test_each_branch_is_a_text(text: str, expected: list[list[str]]) -> None:
    assert texts(text) == expected


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("{n, plural, one {a", 18),
        ("{n, plural, one a} b", 18),
        ("{n, plural, one {a {b} c} d e} f {g}", 30),
        ("{n, plural, one {a {b c}", 24),
    ],
)
def test_a_broken_message_has_no_texts(text: str, end: int) -> None:
    assert list(find_messages(text)) == [((0, end), [])]
