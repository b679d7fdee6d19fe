"""Nouns as parts of longer words."""

import pytest

from server.text.compounds import begins_of_compounds, find_part, long_words


def parts(noun: str, text: str) -> list[str]:
    return [text[start:end] for start, end in find_part(noun, long_words(text))]


@pytest.mark.parametrize(
    ("noun", "word", "part"),
    [
        ("Kanalisation", "Kanalisationssystem", "Kanalisation"),
        ("Partei", "Staatspartei", "partei"),
        ("Versicherung", "Krankenversicherungsbeitrag", "versicherung"),
        ("Übergang", "Übergangsdauer", "Übergang"),
    ],
)
def test_a_noun_is_a_part_of_a_compound(noun: str, word: str, part: str) -> None:
    assert parts(noun, f"(Das {word}.)") == [part]


@pytest.mark.parametrize(
    ("noun", "text"),
    [
        ("Hund", "Hund, Hunde, Hunden, Hundert"),
        ("Freund", "Freundschaft, Freundlichkeit, Freundinnen"),
        ("Arbeit", "Arbeitslosigkeit"),
        ("Stand", "Verstand, Gegenstand, Unterstand"),
        ("Tag", "Montagmorgen, Tagesordnung"),
        ("rot", "Rotkehlchen"),
        ("Haus", "haustürgeschäft, HAUSTÜREN, Haustür2000, HausBesitzer"),
        ("rote Haus", "Das rote Haustier"),
        ("Haus-Boot", "Haus-Bootbesitzer"),
    ],
)
def test_a_noun_is_no_part_of_other_words(noun: str, text: str) -> None:
    assert parts(noun, text) == []


def test_each_word_has_a_noun_once_and_words_are_in_order() -> None:
    text = "Hausmeisterhaus und Elternhaus"

    assert list(find_part("Haus", long_words(text))) == [(0, 4), (26, 30)]


def test_longer_words_begin_with_any_form_of_a_noun_or_with_an_s_behind_it() -> None:
    assert begins_of_compounds(["Zahl", "Zahlen"]) == ["Zahl", "Zahlen", "Zahls"]
    assert begins_of_compounds(["seit"]) == []
    assert begins_of_compounds(["Tag", "rote Haus"]) == []
