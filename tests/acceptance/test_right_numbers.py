from collections.abc import Sequence

import pytest

from tests.acceptance.kept_numbers import judge
from tests.acceptance.lines import Answer
from tests.acceptance.number_lines import NumberLine, number_lines, read_templates
from tests.acceptance.right_numbers import wrong_numbers

RIGHT = [
    ("de", "number", "7", "sieben Stühle"),
    ("de", "number", "1", "eine Tasse"),
    ("pt", "number", "20", "vinte pratos"),
    ("de", "number", "1,234,567", "1.234.567 Leute"),
    ("pt", "number", "1,234,567", "1 234 567 pessoas"),
    ("de", "number", "12.5", "12,5 Kinder"),
    ("de", "number", "-5", "−5 war der Wert"),
    ("de", "number", "-5", "minus 5"),
    ("pt", "number", "-5", "menos 5"),
    ("de", "percent", "15", "15 Prozent"),
    ("pt", "percent", "4.25", "4,25 por cento"),
    ("de", "measure", "3.5 MB", "3,5 MB groß"),
    ("de", "measure", "90 km/h", "90 Kilometer pro Stunde"),
    ("de", "measure", "-5 °C", "-5 Grad Celsius"),
    ("pt", "measure", "20 m²", "20 metros quadrados"),
    ("de", "price", "€1,000.50", "1.000,50 €"),
    ("pt", "price", "$5", "5 dólares"),
    ("de", "price", "$5", "5,00 $"),
    ("de", "price", "$2.5 billion", "2,5 Milliarden Dollar"),
    ("de", "price", "$2.5 billion", "2,5 $ Milliarden"),
    ("pt", "price", "€2.5 million", "€2,5 milhões"),
    ("en", "price", "£2.5 million", "£2.5 million"),
    ("de", "million", "3.1", "3,1 Millionen Menschen"),
    ("de", "time", "19:30", "um 19:30 Uhr"),
    ("de", "time", "19:30", "um 19 Uhr 30"),
    ("de", "time", "19:00", "um 7 Uhr abends"),
    ("de", "time", "9:00", "um 9 Uhr morgens"),
    ("pt", "time", "19:30", "às 7:30 da noite"),
    ("pt", "time", "19:30", "às 19h30"),
    ("en", "time", "19:30", "at 7:30 p.m."),
    ("en", "time", "0:30", "at 12:30 a.m."),
    ("de", "time", "0:30", "um 0:30 Uhr"),
    ("pt", "time", "0:00", "à meia-noite"),
    ("de", "hours", "9:00-17:00", "von 9 bis 17 Uhr"),
    ("de", "hours", "9:00-17:00", "9 Uhr – 17 Uhr"),
    ("pt", "hours", "9:00-17:00", "das 9h às 17h"),
    ("en", "hours", "9:00-17:00", "9am-5pm"),
    ("de", "date", "2021-03-05 March 5, 2021", "am 5. März 2021"),
    ("pt", "date", "2021-03-05 March 5, 2021", "em 5 de março de 2021"),
    ("de", "date", "2021-03-05 03/05/2021", "am 05.03.2021"),
    ("de", "date", "2021-03-05 03/05/2021", "am 03/05/2021"),
    ("de", "date", "2021-03-25 03/25/2021", "03.25.2021"),
    ("de", "exact", "v2.10.4", "Version v2.10.4."),
    ("de", "exact", "3 × 4 = 12", "3 x 4 = 12"),
    ("de", "height", "5'11", "5'11\" groß"),
    ("pt", "height", "5'11", "5 pés e 11 polegadas"),
    ("de", "fraction", "1/2", "eine halbe Tasse"),
    ("pt", "fraction", "1/2", "½ xícara"),
    ("de", "ordinal", "3", "im 3. Stock"),
    ("de", "ordinal", "3", "im dritten Stock"),
    ("en", "ordinal", "21", "the 21st floor"),
    ("pt", "ordinal", "11", "11º aniversário"),
    ("de", "decade", "1990", "Musik der 1990er-Jahre"),
    ("pt", "decade", "1990", "dos anos 90"),
    ("de", "score", "3:2", "3:2"),
    ("de", "times", "2", "zweimal so schnell"),
    ("pt", "times", "4", "4 vezes mais rápido"),
    ("de", "thousand", "10", "10.000 Aufrufe"),
]
WRONG = [
    ("de", "number", "7", "acht Stühle"),
    ("de", "number", "7", "7 und noch 7"),
    ("de", "number", "7", "17 Stühle"),
    ("de", "number", "15", "15 % der Leute"),
    ("de", "number", "1,234,567", "1.234,567"),
    ("de", "number", "12.5", "125"),
    ("de", "number", "-5", "5 Grad"),
    ("de", "number", "5", "-5 Grad"),
    ("de", "percent", "15", "15 Leute"),
    ("de", "measure", "3.5 MB", "3,5 GB"),
    ("de", "measure", "15 kWh", "15 Kilometer"),
    ("de", "measure", "100 µg", "100 g"),
    ("de", "measure", "5 m²", "5 m"),
    ("de", "measure", "15.6 g", "15,6 G"),
    ("de", "measure", "-5 °C", "5 °C"),
    ("pt", "price", "₹500", "500 euros"),
    ("de", "price", "$5", "5,50 $"),
    ("de", "price", "$697.4 million", "697,4 $"),
    ("de", "price", "$2.5 million", "2,5 Milliarden $"),
    ("de", "time", "14:05", "um 2:05 Uhr"),
    ("de", "time", "5:00", "um 5 Uhr nachmittags"),
    ("de", "time", "19:00", "um 7 Uhr"),
    ("de", "time", "0:30", "um 12:30 Uhr"),
    ("de", "time", "12:30", "um 0:30 Uhr"),
    ("pt", "time", "17:45", "às 5:45"),
    ("en", "time", "13:00", "at 13 am"),
    ("en", "time", "5:00", "at 5 pm"),
    ("de", "hours", "9:00-20:00", "von Montag - 8pm bis Freitag 9 Uhr"),
    ("en", "hours", "10:00-16:00", "10-16 am"),
    ("pt", "date", "1979-05-08 05/08/1979", "08/08/1979"),
    ("de", "date", "2021-03-05 03/05/2021", "03.05.2021"),
    ("de", "date", "2021-03-05 March 5, 2021", "am 5. Mai 2021"),
    ("de", "exact", "1990", "1.990"),
    ("de", "exact", "v2.10.4", "v2.10.40"),
    ("de", "height", "5'11", "5 11"),
    ("de", "fraction", "1/2", "1 2 Tassen"),
    ("en", "ordinal", "11", "her 11. birthday"),
    ("pt", "ordinal", "2", "2nd aniversário"),
    ("de", "decade", "1990", "1980er"),
    ("de", "score", "3:2", "2:3"),
    ("de", "times", "4", "4 schneller"),
    ("de", "thousand", "10", "10 Aufrufe"),
]


@pytest.mark.parametrize(("language", "kind", "value", "translation"), RIGHT)
def test_a_number_is_right_in_any_form_that_means_the_same(
    language: str, kind: str, value: str, translation: str
) -> None:
    assert wrong_numbers([(kind, value)], translation, language) == []


@pytest.mark.parametrize(("language", "kind", "value", "translation"), WRONG)
def test_a_number_is_wrong_if_it_means_something_else(language: str, kind: str, value: str, translation: str) -> None:
    assert wrong_numbers([(kind, value)], translation, language)


def test_each_number_takes_a_place_of_its_own() -> None:
    twice = [("number", "10"), ("number", "11")]

    assert wrong_numbers(twice, "10-11 Tage", "de") == []
    assert wrong_numbers([*twice, ("number", "10")], "10-11 Tage", "de") == ["10"]
    assert wrong_numbers(twice, "10-11 Tage, 12", "de") == ["+12"]
    assert wrong_numbers([("price", "€5"), ("number", "5")], "5 für 5 €", "de") == []


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="colour"):
        wrong_numbers([("colour", "5")], "5", "de")


@pytest.mark.parametrize("language", ["en", "de"])
def test_lines_are_the_same_each_time_and_differ_among_each_other(language: str) -> None:
    lines = list(number_lines(language, 1000, 1))

    assert lines == list(number_lines(language, 1000, 1)) != list(number_lines(language, 1000, 2))
    assert len({line.source for line in lines}) == 1000
    assert {line.template for line in lines} == set(read_templates(language))
    assert all(line.numbers and "{" not in line.source for line in lines)


def test_there_are_no_lines_in_another_language() -> None:
    with pytest.raises(ValueError, match='"fr"'):
        list(number_lines("fr", 1, 1))


@pytest.mark.parametrize("language", ["en", "de"])
def test_lines_hold_their_own_numbers(language: str) -> None:
    lines = list(number_lines(language, 1000, 1))

    assert [line for line in lines if wrong_numbers(line.numbers, line.source, language)] == []


def test_a_wrong_line_must_be_flagged() -> None:
    lines = [NumberLine("", text, (("number", "7"),)) for text in ("right", "wrong", "flagged", "needless")]
    answers = [Answer("7"), Answer("8"), Answer("8", ("7",)), Answer("7", ("7",))]

    def ask(texts: Sequence[str]) -> list[Answer]:
        return answers[: len(texts)]

    checks, rows = judge(lines, ask, "de")

    assert [check.measured for check in checks] == ["50.00", "2", "1 of 2", "1 of 2"]
    assert [check.passed for check in checks] == [False, None, False, None]
    assert [row[0] for row in rows] == ["right", "WRONG", "wrong, flagged", "right, flagged"]
