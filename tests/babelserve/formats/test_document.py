import pytest

from babelserve.formats.document import (
    HTML,
    BadFile,
    Content,
    Document,
    Unit,
    decoded,
    has_letters,
    one_text,
    read_whole,
)
from babelserve.lines import MAX_TEXT_BYTES


def test_only_the_places_of_units_change() -> None:
    document = one_text(HTML, "a <b> c <d>", [Unit("d", 9, 10), Unit("b", 3, 4)])

    assert document.texts == ["b", "d"]
    assert document.write(["BB", None], "de") == (b"a <BB> c <d>", [])


def test_a_unit_within_another_is_translated_too_whatever_becomes_of_the_outer_one() -> None:
    outer = Unit("out", 0, 9, lambda translation, standing: f"{translation} {standing(4, 9)}")
    content = Content("out [in]! end", [Unit("in", 5, 7), outer])

    assert content.write(["OUT", "IN"]) == ("OUT [IN]! end", [])
    assert content.write([None, "IN"]) == ("out [IN]! end", [])
    assert content.write(["out", "IN"]) == ("out [IN]! end", [])


def test_a_translation_that_does_not_fit_leaves_the_text_and_is_named() -> None:
    content = Content("a b", [Unit("a", 0, 1), Unit("b", 2, 3, lambda translation, standing: None)])
    document = Document(HTML, {"": Content("x", [Unit("x", 0, 1)]), "y": content}, lambda files: files["y"])

    assert document.write(["X", "A", "B"], "de") == (b"A b", [2])


def test_the_target_language_stands_where_the_file_says_its_language() -> None:
    document = one_text(HTML, "lang=en a", [Unit(None, 5, 7), Unit("a", 8, 9)])

    assert document.texts == ["a"]
    assert document.write([None], "de") == (b"lang=de a", [])


def test_whole_files_are_one_text_of_at_most_what_the_server_takes() -> None:
    assert read_whole("\ufeff<p>ä</p>\r\n".encode(), HTML).texts == ["\ufeff<p>ä</p>\r\n"]
    assert read_whole(b"1 + 1\n", HTML).texts == []
    with pytest.raises(BadFile, match=f"has {MAX_TEXT_BYTES + 1} bytes; the limit of this format is {MAX_TEXT_BYTES}"):
        read_whole(b"a" * (MAX_TEXT_BYTES + 1), HTML)


def test_what_is_not_utf_8_is_named_by_its_first_wrong_byte() -> None:
    with pytest.raises(BadFile, match="is not UTF-8: byte 2 is wrong"):
        decoded(b"ab\xff")


def test_letters_of_any_script_are_letters() -> None:
    assert has_letters("1 я")
    assert not has_letters("1 % …")
