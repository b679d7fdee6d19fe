"""Plain text in lines of a fixed width."""

import pytest

from server.text.markup.lines import read_lines
from tests.server.text.markup.identity import identity


@pytest.mark.parametrize(
    ("text", "expected", "back"),
    [
        ("A red\ndog.\n\n  A cat\r\nsits.\n", ["A red dog.", "A cat sits."], "A red dog.\n\n  A cat sits.\n"),
        ("A\n \t\n\r\nb", ["A", "b"], "A\n \t\n\r\nb"),
        ("A < b & <c>", ["A < b & <c>"], "A < b & <c>"),
        ("\n\n1\n", [], "\n\n1\n"),
        ("", [], ""),
    ],
)
def test_lines_are_joined_and_paragraphs_are_not(text: str, expected: list[str], back: str) -> None:
    document = read_lines(text)

    assert [block.text for block in document.blocks] == expected
    assert identity(document) == back
