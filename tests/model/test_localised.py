import random
import re

import pytest

from model.localised import LOCALISED

PATTERNS = {
    "number": (r"\d{1,3}(,\d{3})*", r"\d{1,3}(\.\d{3})*"),
    "decimal": (r"\d{1,3}(,\d{3})?\.\d{1,5}", r"\d{1,3}(\.\d{3})?,\d{1,5}"),
    "percentage": (r"[\d,.]*\d%", r"[\d,.]*\d %"),
    "price": (r"[$€£][\d,]+(\.\d\d)?|[\d,a-z-]+ [a-z]+", r"[\d.]+(,\d\d)? [$€£]|[\d.a-zßöü]+ [A-Z][a-z]+"),
    "clock": (r"\d?\d:\d\d|\d?\d(:\d\d)? ?[ap]m", r"\d?\d(:\d\d)? Uhr"),
    "spoken": (r"[a-z' ]+", r"(halb|Viertel (nach|vor)|(fünf|zehn|zwanzig) (nach|vor)) [a-zöü]+|[a-zöü]+ Uhr"),
    "count": (r"[a-z]+(-[a-z]+)?", r"[a-zßöü]+"),
    "day": (r"[A-Z][a-z]+ \d\d?([a-z]{2}|, \d{4})?|\d\d? [A-Z][a-z]+( \d{4})?", r"\d\d?\. [A-Z][a-zä]+( \d{4})?"),
    "month": (r"[A-Z][a-z]+", r"[A-Z][a-zä]+"),
    "weekday": (r"[A-Z][a-z]+day", r"[A-Z][a-z]+(tag|woch)"),
}
EXAMPLES = [
    ("number", "42", "42"),
    ("decimal", "0.5", "0,5"),
    ("percentage", "50%", "50 %"),
    ("price", "$50", "50 $"),
    ("price", "20 dollars", "20 Dollar"),
    ("clock", "12 am", "0 Uhr"),
    ("clock", "12:30 pm", "12:30 Uhr"),
    ("clock", "1 pm", "13 Uhr"),
    ("clock", "11:45 pm", "23:45 Uhr"),
    ("clock", "8:15", "8:15 Uhr"),
    ("spoken", "half past seven", "halb acht"),
    ("spoken", "half past twelve", "halb eins"),
    ("spoken", "a quarter to one", "Viertel vor eins"),
    ("spoken", "quarter past nine", "Viertel nach neun"),
    ("spoken", "one o'clock", "ein Uhr"),
    ("spoken", "ten to six", "zehn vor sechs"),
    ("count", "twenty-one", "einundzwanzig"),
    ("count", "thirty", "dreißig"),
    ("count", "ninety-nine", "neunundneunzig"),
    ("day", "May 3rd", "3. Mai"),
    ("day", "March 12th", "12. März"),
    ("month", "December", "Dezember"),
    ("weekday", "Wednesday", "Mittwoch"),
]


@pytest.mark.parametrize("kind", LOCALISED)
def test_every_kind_has_the_form_of_its_language(kind: str) -> None:
    rng = random.Random(0)

    for _ in range(500):
        text = LOCALISED[kind](rng)
        assert text.keys() == {"en", "de"}
        assert re.fullmatch(PATTERNS[kind][0], text["en"])
        assert re.fullmatch(PATTERNS[kind][1], text["de"])


@pytest.mark.parametrize(("kind", "english", "german"), EXAMPLES)
def test_both_languages_mean_the_same(kind: str, english: str, german: str) -> None:
    drawn = [LOCALISED[kind](random.Random(seed)) for seed in range(20_000)]

    assert {text["de"] for text in drawn if text["en"] == english} == {german}


@pytest.mark.parametrize("kind", ["number", "decimal", "percentage", "price"])
def test_the_digits_are_the_same_in_both_languages(kind: str) -> None:
    for seed in range(500):
        text = LOCALISED[kind](random.Random(seed))
        assert re.sub(r"\D", "", text["en"]) == re.sub(r"\D", "", text["de"])
