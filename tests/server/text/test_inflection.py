"""Forms by the endings of German."""

import pytest

from server.text.inflection import inflected


@pytest.mark.parametrize(
    ("word", "others"),
    [
        ("Anwender", ["Anwenders", "Anwendern"]),
        ("Haus", ["Hauses"]),
        ("Kreis", ["Kreises"]),
        ("Student", ["Studenten"]),
        ("Name", ["Namen", "Namens"]),
        ("Leistung", ["Leistungen"]),
        ("Herr", ["Herrn", "Herren"]),
        ("Kronprinz", ["Kronprinzen"]),
        ("Zeugnis", ["Zeugnisses"]),
        ("Murmeln", []),
        ("E-Mail-Konto", ["E-Mail-Kontos"]),
        ("schnell", ["schnelle", "schneller", "schnelles", "schnellem", "schnellen"]),
        ("vernetzte", ["vernetzt", "vernetzter", "vernetzten"]),
        ("dunkel", ["dunkle", "dunklen"]),
        ("fragen", ["fragt", "fragte", "gefragt"]),
        ("verloren", ["verlorene", "verlorenen"]),
        ("künstliche Intelligenz", ["künstlichen Intelligenz", "künstlicher Intelligenz"]),
        ("Vereinte Nationen", ["Vereinten Nationen"]),
        ("großer runder Tisch", ["großen runden Tisch", "großen runden Tisches"]),
        ("Haus der Kunst", ["Hauses der Kunst"]),
    ],
)
def test_german_words_have_the_endings_of_their_kind(word: str, others: list[str]) -> None:
    forms = inflected(word, "de")

    assert forms[0] == word
    assert set(others) <= set(forms)
    assert len(set(forms)) == len(forms)


@pytest.mark.parametrize(
    ("word", "wrong"),
    [
        ("Leistung", "Leistungs"),
        ("Prinz", "Prinzes"),
        ("verglichen", "geverglicht"),
        ("untergraben", "geuntergrabt"),
        ("angeschlossen", "geangeschlosst"),
        ("Murmeln", "Murmelns"),
        ("Haus der Kunst", "Haus der Künste"),
        ("Freundin", "Freundinnen"),
        ("großer runder Tisch", "großen runder Tisch"),
    ],
)
def test_german_words_have_no_endings_of_other_kinds(word: str, wrong: str) -> None:
    assert wrong not in inflected(word, "de")


@pytest.mark.parametrize("phrase", ["A1", "3", "nach oben", "", "-"])
def test_what_has_no_word_to_inflect_stays(phrase: str) -> None:
    assert inflected(phrase, "de") == (phrase,)


def test_a_language_without_rules_has_the_phrase_alone() -> None:
    assert inflected("Haus", "fr") == inflected("Haus", "") == ("Haus",)
    assert len(inflected("Haus", "de-AT")) > 1


@pytest.mark.parametrize("phrase", ["großer " * 28 + "Mensch", "e" * 200, "Ä" * 200, "en" * 100, "-" * 200])
def test_forms_of_the_longest_phrases_are_few(phrase: str) -> None:
    assert len(inflected(phrase, "de")) <= 24
    assert all(len(form) <= len(phrase) + 60 for form in inflected(phrase, "de"))
