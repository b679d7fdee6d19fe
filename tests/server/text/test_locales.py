"""Quantities of translations, written as a language writes them."""

import pytest

from server.text.locales import locale_of


def adapted(source: str, translation: str, source_language: str = "en", language: str = "de") -> str:
    locale = locale_of(source, source_language, language)
    return translation if locale is None else locale.adapt(translation)


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("It costs $1,250.50.", "Es kostet $1,250.50.", "Es kostet 1.250,50 $."),
        ("It costs $1,250.50.", "Es kostet 1250,50 Dollar.", "Es kostet 1.250,50 Dollar."),
        ("It costs $1,250.50.", "Es kostet US$1,250.50.", "Es kostet US$1.250,50."),
        ("$5 million are lost.", "$5 Millionen sind weg.", "5 Millionen $ sind weg."),
        ("He lost -$5.", "Er verlor -$5.", "Er verlor -5 $."),
        ("It is 5km and 10% off.", "Es sind 5km und 10% weniger.", "Es sind 5 km und 10 % weniger."),
        ("We had 1,000,000 guests.", "Wir hatten 1,000,000 Gäste.", "Wir hatten 1.000.000 Gäste."),
        ("On 12/31/2024 it rained.", "Am 12/31/2024 regnete es.", "Am 31.12.2024 regnete es."),
        ("On 31/12/2024 it rained.", "Am 31/12/2024 regnete es.", "Am 31.12.2024 regnete es."),
        # What may be no quantity, or has two meanings.
        ("Python 3.11 is here.", "Python 3.11 ist da.", "Python 3.11 ist da."),
        ("On 03/04/2024 it rained.", "Am 03/04/2024 regnete es.", "Am 03/04/2024 regnete es."),
        ("On 13/13/2024 it rained.", "Am 13/13/2024 regnete es.", "Am 13/13/2024 regnete es."),
        ("It has 2.5 kg and 25 parts.", "Es hat 2.5 kg und 25 Teile.", "Es hat 2.5 kg und 25 Teile."),
        ("It has 2.5 kg and twenty-five parts.", "Es hat 2.5 kg und 25 Teile.", "Es hat 2,5 kg und 25 Teile."),
        ("It is 25 kg.", "Es sind 2.5 kg.", "Es sind 2.5 kg."),
        ("It is 25 kg.", "Es sind 2,5 kg.", "Es sind 2,5 kg."),
        ("It is 1.250 kg.", "Es sind 1,250 kg, nicht 1250 kg.", "Es sind 1,250 kg, nicht 1250 kg."),
        ("It costs $1,250.", "Es kostet 1250 $, nicht 12.50 $.", "Es kostet 1.250 $, nicht 12.50 $."),
        ("It is 1,250.125 m.", "Es sind 1250.125 m, nicht 1.250.125 m.", "Es sind 1.250,125 m, nicht 1.250,125 m."),
        ("It costs $1,250.50.", "Es kostet $1.250.50 oder $1,250,50.", "Es kostet 1.250,50 $ oder 1.250,50 $."),
        ("It costs $1,250,000.", "Es kostet $1.250,000.", "Es kostet 1.250.000 $."),
        ("20% are lost.", "2.0% sind verloren.", "2.0% sind verloren."),
        ("1,250 people at 12:50 pm.", "1,250 Leute um 12:50 Uhr.", "1.250 Leute um 12:50 Uhr."),
        ("1,250 people read 1.2.50.", "1,250 Leute lasen 1.2.50.", "1,250 Leute lasen 1.2.50."),
    ],
)
def test_german_has_its_own_way(source: str, translation: str, expected: str) -> None:
    assert adapted(source, translation) == expected


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("Es kostet 1.250,50 €.", "It costs 1.250,50 €.", "It costs €1,250.50."),
        ("Er zahlte 5 Millionen $.", "He paid 5 million $.", "He paid $5 million."),
        ("Es sind 3,5 % mehr.", "It is 3,5 % more.", "It is 3.5% more."),
        ("Es sind 2,5 kg.", "It is 2,5 kg.", "It is 2.5 kg."),
        ("Am 31.12.2024 regnete es.", "On 31.12.2024 it rained.", "On 31 December 2024 it rained."),
        ("Am 1.2.2024 regnete es.", "It rained on 02/01/2024.", "It rained on 1 February 2024."),
        ("Version 3.11 ist da.", "Version 3.11 is here.", "Version 3.11 is here."),
    ],
)
def test_english_has_its_own_way(source: str, translation: str, expected: str) -> None:
    assert adapted(source, translation, "de", "en") == expected


@pytest.mark.parametrize(("source_language", "language"), [("en", "en-GB"), ("en", "pt"), ("fr", "de")])
def test_other_languages_stay_as_they_are(source_language: str, language: str) -> None:
    assert locale_of("It costs $1,250.50.", source_language, language) is None


def test_a_region_does_not_matter() -> None:
    assert adapted("It costs $1,250.50.", "Es kostet $1,250.50.", "en-GB", "de-AT") == "Es kostet 1.250,50 $."


def test_a_sentence_without_quantities_has_none() -> None:
    assert locale_of("It is cold in 2024.", "en", "de") is None
