"""Signs of menus."""

import pytest

from server.text.shortcuts import find_shortcut, with_shortcut


@pytest.mark.parametrize(
    ("text", "place"),
    [("&File", 0), ("Save &as...", 5), ("E&xit", 1), ("Cu&t", 2), ("_Open file...", 0), ("Save _As", 5)],
)
def test_shortcuts_are_found(text: str, place: int) -> None:
    assert find_shortcut(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "File",
        "AT&T",
        "Cats & dogs",
        "Tom &amp; me",
        "Rock&roll",
        "&File and &edit",
        "We &save it.",
        "Wait. &Save",
        "_emphasis_",
        "_foo",
        "T_max",
        "The file my_name",
        "A \\_b",
        "&" + "Long" * 10,
    ],
)
def test_other_signs_are_none(text: str) -> None:
    assert find_shortcut(text) is None


@pytest.mark.parametrize(
    ("text", "sign", "letter", "expected"),
    [
        ("Datei", "&", "F", "&Datei"),
        ("Speichern unter...", "&", "u", "Speichern &unter..."),
        ("(Alle) suchen", "_", "S", "(Alle) _suchen"),
        ("(Alle)", "_", "S", "(_Alle)"),
        ("12", "_", "S", "_12"),
    ],
)
def test_a_sign_stands_before_a_word(text: str, sign: str, letter: str, expected: str) -> None:
    assert with_shortcut(text, sign, letter) == expected
