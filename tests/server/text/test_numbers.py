"""Tests of whether a translation still has the numbers of its source."""

import pytest

from server.text.numbers import missing_numbers


def missing(source: str, translation: str, language: str = "de") -> list[str]:
    return [source[span.start : span.end] for span in missing_numbers(source, translation, language)]


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("It costs $1,234.56.", "Es kostet 1.234,56 $."),
        ("It costs $5.00, or 2.50.", "Es kostet 5 Dollar oder 2,5."),
        ("12,500 visitors in 2023", "12 500 Besucher im Jahr 2023"),
        ("at 7 pm, 12 am or 9:05 a.m.", "um 19 Uhr, 0 Uhr oder 09:05 Uhr"),
        ("9am\u20135pm", "9 bis 17 Uhr"),
        ("at 7 pm", "um 7 Uhr abends"),
        ("at 6:00 p.m.", "um 18:00 Uhr"),
        ("be there by 2:30", "bis halb drei da sein"),
        ("um 21:00 Uhr", "at 9:00 p.m."),
        ("um 2.30 Uhr", "at 2:30"),
        ("um 20 Uhr", "at 8 pm"),
        ("$11\u2013$35", "11\u201335 $"),
        ("$4.5 billion, 3 million", "4,5 Milliarden Dollar, 3 Mio."),
        ("1,234.56 and 1,234,567", "1.234,56 und 1.234.567"),
        ("12 pm", "12 Uhr mittags"),
        ("The 1990s, the 90s", "Die 1990er, die 90er"),
        ("the 1980s", "die 80er Jahre"),
        ("the 21st century", "o s\u00e9culo XXI"),
        ("2 dogs and 12 cats", "zwei Hunde und zw\u00f6lf Katzen"),
        ("\u22125 degrees, -7 too", "minus 5 Grad, -7 auch"),
        ("\u20ac5\u2013\u20ac10", "5 Euro bis 10 Euro"),
        ("5 kg, 3 GB, 20 \u00b0C and 5%", "5 Kilogramm, 3GB, 20 Grad und 5 Prozent"),
        ("on 12/25/2024", "am 25. Dezember 2024"),
        ("\u00a32.3 million", "2,3 Millionen Pfund"),
        ("no number", "eine 5"),
        ("Chapter 007", "Kapitel 7"),
        ("3-2, 16:9, 2/3", "3-2, 16:9, 2/3"),
        ("1.5 to 1", "1,5 zu 1"),
    ],
)
def test_a_number_may_have_any_right_form(source: str, translation: str) -> None:
    assert missing(source, translation, "pt" if "XXI" in translation else "de") == []


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("83,149,300 people", "83.149 Leute", ["83,149,300"]),
        ("Open 9am\u20135pm.", "9 Uhr offen.", ["9am", "5pm"]),
        ("He owes me \u20ac50.", "Er schuldet mir 50 Pfund.", ["\u20ac50"]),
        ("\u20ac5\u2013\u20ac10", "5-Geschichte10", ["\u20ac5", "\u20ac10"]),
        ("200 g flour", "200 Mehl", ["200 g"]),
        ("\u22125 degrees", "5 Grad", ["\u22125"]),
        ("7 and 7", "sieben", ["7"]),
        ("room 25", "Zimmer 52", ["25"]),
        ("\u00a32.3bn", "2,3bn \u00a32", ["\u00a32.3bn"]),
        ("12 cats", "elf Katzen", ["12"]),
        ("5 pm", "6 Uhr", ["5 pm"]),
        ("at 6 p.m.", "um 6 Uhr", ["6 p.m."]),
        ("at 6:00 p.m.", "um 6:00 Uhr", ["6:00 p.m."]),
        ("Open 10am-2pm", "10 Uhr-2 Uhr", ["10am", "2pm"]),
        ("5 kWh", "5 Kilometer", ["5 kWh"]),
        ("\u00a3697.4 million", "697,4 \u00a3", ["\u00a3697.4 million"]),
        ("8,771,388 people", "8.771,388 Leute", ["8,771,388"]),
        ("um 13 Uhr", "at 13 am", ["13 Uhr"]),
        ("3,366,424 people", "3366.424 Leute", ["3,366,424"]),
        ("on 05/08/1979", "am 08/08/1979", ["05"]),
        ("um 18:45 Uhr", "at 18:45 am", ["18:45 Uhr"]),
        ("um 4.15 Uhr", "at 4:15 pm", ["4.15 Uhr"]),
        ("um 5.05 Uhr", "at 5,05", ["5.05 Uhr"]),
        ("\u20ac171.4 billion", "171,4 Milliarden \u20ac1", ["\u20ac171.4 billion"]),
        ("at 12:00 a.m.", "um 12:00 Uhr", ["12:00 a.m."]),
        ("9 of us at 9:45 pm", "9:45 Uhr um 21:45 Uhr", ["9:45 pm"]),
        ("99% in 1956", "99 % 1956 um 99 %", ["99%"]),
    ],
)
def test_a_number_without_a_right_form_is_missing(source: str, translation: str, expected: list[str]) -> None:
    assert missing(source, translation) == expected


def test_a_part_of_one_number_stands_for_no_other() -> None:
    assert missing("13.8 m, 7.4 km and 7 eggs", "13,8 m, 7,4 km und Eier") == ["7"]
    assert missing("7 eggs and 7.4 km", "Eier und 7,4 km") == ["7"]
    assert missing("7 eggs and 7.4 km", "7 Eier und 7,4 km") == []


def test_number_words_of_an_unknown_language_are_taken_to_be_right() -> None:
    assert missing("5 dogs", "pi\u0119\u0107 ps\u00f3w", "pl") == []
    assert missing("55 dogs", "ps\u00f3w", "pl") == ["55"]


@pytest.mark.parametrize("unit", ["1", "1.", "1 ", "$", "1$", "1a", "-1", "1/"])
def test_any_text_can_be_checked(unit: str) -> None:
    assert missing(unit * 2000, unit * 2000) == []
