"""Tests of how the acceptance command judges placeholders."""

from tests.acceptance.placeholder_lines import (
    PlaceholderLine,
    num_lost,
    placeholder_lines,
    untranslated,
    without_placeholders,
)

SENTENCES = [f"The old house number {word} is red." for word in ("one", "two", "three", "four") * 20]
ROUND = PlaceholderLine("He saw the red book.", ("*", "*"), "round", "He saw the *red* book.")


def test_lines_are_of_all_places_and_have_their_placeholders() -> None:
    lines = list(placeholder_lines(SENTENCES))

    assert {line.place for line in lines} == {"start", "between", "touching", "end", "round", "quoted"}
    assert all(num_lost(line, line.source) == 0 for line in lines)
    assert all(without_placeholders(line, line.source) == line.sentence for line in lines if line.place != "start")


def test_what_is_lost_doubled_or_longer_is_counted() -> None:
    line = PlaceholderLine("", ("{x}", "%s"), "between", "")

    assert [num_lost(line, text) for text in ("{x} %s", "{x}", "{x} {x} %s", "{x}} %s")] == [0, 1, 1, 1]
    assert num_lost(ROUND, "Er sah das **rote Buch.") > 0


def test_words_beside_placeholders_must_not_stay() -> None:
    assert untranslated(ROUND, "Er sah das *red* Buch.", "Er sah das rote Buch.") == ["red"]
    assert untranslated(ROUND, "Er sah das *rote* Buch.", "Er sah das rote Buch.") == []
    assert untranslated(ROUND, "Er sah das *red* Buch.", "Er sah das red Buch.") == []
