"""Tests of the numbers of a text, each with what belongs to it."""

import itertools
from typing import Any

import pytest

from server.text.quantities import CURRENCIES, MAGNITUDES, UNITS, find_quantities


@pytest.mark.parametrize(
    ("text", "number", "facts"),
    [
        ("It costs $1,234.56 now", "1,234.56", {"currency": "$"}),
        ("5 \u20ac each", "5", {"currency": "\u20ac"}),
        ("\u00a3697.4 million", "697.4", {"currency": "\u00a3", "magnitude": "million"}),
        ("3.5 MB", "3.5", {"unit": "MB"}),
        ("20 \u00b0C", "20", {"unit": "\u00b0C"}),
        ("5 mm, not Mm", "5", {"unit": "mm"}),
        ("50 km/h", "50", {"unit": "km/h"}),
        ("7:30 p.m. sharp", "7", {"minute": "30", "is_time": True, "half_of_day": "p"}),
        ("9am", "9", {"is_time": True, "half_of_day": "a"}),
        ("um 14.20 Uhr", "14", {"minute": "20", "is_time": True, "is_of_24_hours": True}),
        ("um 8 Uhr", "8", {"is_time": True, "is_of_24_hours": True}),
        ("\u22125 degrees", "5", {"has_minus": True}),
        ("the 1990s", "1990", {"is_decade": True}),
        ("the 21st of them", "21", {}),
        ("a 3 day trip", "3", {}),
    ],
)
def test_a_number_has_what_belongs_to_it(text: str, number: str, facts: dict[str, Any]) -> None:
    (found,) = find_quantities(text)

    assert found.number == number
    empty = {"minute": "", "half_of_day": "", "currency": "", "unit": "", "magnitude": ""}
    flags = dict.fromkeys(("is_time", "is_of_24_hours", "has_minus", "is_decade", "is_of_date", "continues"), False)
    assert {name: getattr(found, name) for name in (*empty, *flags)} == {**empty, **flags, **facts}


def test_numbers_stand_where_they_are_with_their_signs() -> None:
    text = "From $5 to 20 kg, at 9:05 a.m., \u22123."

    assert [text[each.start : each.end] for each in find_quantities(text)] == ["$5", "20 kg", "9:05 a.m.", "\u22123"]


def test_the_numbers_of_a_date_and_the_second_of_a_range_are_marked() -> None:
    date = find_quantities("on 12/25/2024")
    first, second = find_quantities("$5\u2013$10")

    assert [each.is_of_date for each in date] == [True] * 3
    assert (first.continues, second.continues) == (False, True)


def test_names_of_what_belongs_to_numbers_are_in_small_letters() -> None:
    for table in (CURRENCIES, UNITS, MAGNITUDES):
        assert all(name == name.casefold() or "ß" in name for names in table.values() for name in names)


@pytest.mark.parametrize("unit", ["1", "1.", "$1-", "9am", "1/1/11 ", "5 k", "-"])
def test_any_text_can_be_read(unit: str) -> None:
    found = find_quantities(unit * 500)

    assert all(one.end <= other.start for one, other in itertools.pairwise(found))
