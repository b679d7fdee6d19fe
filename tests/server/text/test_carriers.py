import pytest

from server.text.carriers import carrier_pattern, changed_around, clean, sure_end


def test_characters_of_no_meaning_are_taken_out() -> None:
    assert clean("a\ufffd\ue123b") == "ab"


@pytest.mark.parametrize(
    ("carriers", "found"),
    [
        ((), []),
        (("%1", "%2"), ["%1"]),
        (("\ue000", "\ue001"), ["\ue000", "\ue001"]),
        (("\ue001", "%1"), ["%1", "\ue001"]),
    ],
)
def test_symbols_are_found_anywhere_and_codes_as_whole_words(carriers: tuple[str, ...], found: list[str]) -> None:
    assert carrier_pattern(carriers).findall("%1, %12, a%2 b\ue000c \ue001") == found


@pytest.mark.parametrize(
    ("text", "carriers", "sure"),
    [
        ("Say X1", ("X1", "X12"), "Say "),
        ("Say x", ("X1",), "Say "),
        ("Say \ue000", ("\ue000",), "Say \ue000"),
        ("Say it", ("X1",), "Say it"),
        ("", ("X1",), ""),
    ],
)
def test_what_may_become_a_code_is_not_sure(text: str, carriers: tuple[str, ...], sure: str) -> None:
    assert text[: sure_end(text, carriers)] == sure


@pytest.mark.parametrize("parts", [["a1", "a1a"], ["a1a", "\U00010840", "a1"]])
def test_a_text_is_changed_around_its_parts(parts: list[str]) -> None:
    changed = changed_around(parts, "", "a a1 a1a \U00010840a", lambda _, text: text.replace("a", "bc"))

    assert changed == "bc a1 a1a \U00010840bc"


def test_a_text_is_changed_by_its_source_without_the_parts() -> None:
    assert changed_around(["a1"], "a a1", "b a1", lambda source, text: f"{text} {source.count('a')}") == "b a1 1"


def test_a_part_is_no_piece_of_a_word_but_may_touch_another_script() -> None:
    text = "a1 \u89c1a1\u3002 /a1/ a1a a12"

    assert changed_around(["a1"], "", text, lambda _, text: text.replace("a", "b")) == "a1 \u89c1a1\u3002 /a1/ b1b b12"
