import pytest

from babelserve.formats.shortcuts import shortcut_marks, split_shortcut, with_shortcut


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_File", ("File", "_", "F")),
        ("Save &As\u2026", ("Save As\u2026", "&", "A")),
        ("E_xit", ("Exit", "_", "x")),
        ("%s &of %s", ("%s of %s", "&", "o")),
        ("\u6587\u4ef6(_F)\u2026", ("\u6587\u4ef6\u2026", "_", "F")),
    ],
)
def test_a_label_is_parted_from_its_shortcut(text: str, expected: tuple[str, str, str]) -> None:
    assert split_shortcut(text, "_&") == expected


@pytest.mark.parametrize(
    "text",
    [
        *("R&D", "AT&T", "Fish &amp; chips", "snake_case", "a&b", "&&x", "_A _B", "_ x", "Terms && more", "_F\nx"),
        *("It is _all of this that makes a sentence too long for a label", "?a=1&b=2", "__init__"),
    ],
)
def test_other_texts_have_no_shortcut(text: str) -> None:
    assert split_shortcut(text, "_&") == (text, "", "")


def test_a_file_shows_which_marks_it_has_or_its_header_names_one() -> None:
    assert shortcut_marks("", ["The _id", "&amp;", "snake_case", "a"]) == ""
    assert shortcut_marks("", ["_File", "Save"]) == "_"
    assert shortcut_marks("", ["Save &As", "_File"]) == "&_"
    assert shortcut_marks("Language: de\nX-Accelerator-Marker: &\n", ["_File"]) == "&"
    assert shortcut_marks("X-Accelerator-Marker: ~\n", ["_File"]) == ""


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        ("Speichern unter\u2026", "_Speichern unter\u2026"),
        ("%s \u00f6ffnen", "%s _\u00f6ffnen"),
        ("%(name)s \u00f6ffnen", "%(name)s _\u00f6ffnen"),
        ("{name} file_name <b>x</b> \u201eDatei\u201c", "{name} file_name <b>x</b> \u201e_Datei\u201c"),
        ("\u6587\u4ef6\u2026", "\u6587\u4ef6(_F)\u2026"),
        ("1234 %s", "1234 %s"),
    ],
)
def test_a_translation_has_the_mark_at_its_first_word(translation: str, expected: str) -> None:
    assert with_shortcut(translation, "_", "f") == expected
    assert with_shortcut(translation, "", "") == translation


def test_hostile_texts_take_time_in_proportion() -> None:
    for text in ("_" * 1_000_000, '"a' * 500_000 + "_", "(_a" * 300_000):
        assert split_shortcut(text, "_&") == (text, "", "")
        assert with_shortcut(text, "", "") == text
    assert with_shortcut('"a' * 500_000, "_", "a").startswith('"_a"a')
