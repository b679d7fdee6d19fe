"""Sentences with numbers, times, measures and prices: `tests/data/number_sentences.tsv`, filled with drawn values.

Its lines are a language and a sentence with fields, `{price}`, `{price2}` ...: what stands before the digit is the kind
of value that is drawn. A drawn value has the text that stands in the sentence, and the numbers that it is, as
`right_numbers.py` takes them.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.acceptance.lines import DATA
from tests.acceptance.translation_quality import read_rows

_FIELD = re.compile(r"\{([a-z_]+?)\d?\}")
_MONTHS = {
    "en": "January|February|March|April|May|June|July|August|September|October|November|December",
    "de": "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
}
_UNITS = ("kg", "g", "km", "cm", "m", "ml", "km/h", "MB", "GB", "kWh", "m²", "µg")

Numbers = tuple[tuple[str, str], ...]
Drawn = tuple[str, *Numbers]


@dataclass(frozen=True, slots=True)
class NumberLine:
    """A sentence and its numbers, each a kind and a value; and the template that it is from."""

    template: str
    source: str
    numbers: Numbers


def read_templates(language: str) -> list[str]:
    """Returns the sentences of a language.

    Raises:
        ValueError: there is none.
    """
    templates = [template for code, template in read_rows(DATA / "number_sentences.tsv") if code == language]
    if not templates:
        raise ValueError(f'there are no sentences with numbers in "{language}"')
    return templates


def number_lines(language: str, count: int, seed: int) -> Iterator[NumberLine]:
    """Yields different sentences, each template in its turn.

    Args:
        language: "en" or "de".
        count: how many.
        seed: of the values.

    Raises:
        ValueError: there are no sentences in the language.
    """
    templates = read_templates(language)
    draw = _Draw(random.Random(seed), language)
    seen: set[str] = set()
    index = 0
    while len(seen) < count:
        template = templates[index % len(templates)]
        index += 1
        numbers: list[tuple[str, str]] = []

        def fill(field: "re.Match[str]", numbers: list[tuple[str, str]] = numbers) -> str:
            drawn: Drawn = getattr(draw, field[1])()
            text, *values = drawn
            numbers += values
            return text

        source = _FIELD.sub(fill, template).replace("m..", "m.")
        if source not in seen:
            seen.add(source)
            yield NumberLine(template, source, tuple(numbers))


class _Draw:
    """Draws values; each method returns the text of one and its numbers."""

    def __init__(self, random: random.Random, language: str) -> None:
        self._random = random
        self._is_german = language == "de"
        self._months = _MONTHS[language].split("|")

    def _in_digits(self, value: str) -> str:
        """Returns a value in English notation as the language writes it."""
        return value.translate(str.maketrans(".,", ",.")) if self._is_german else value

    def _between(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def few(self) -> Drawn:
        value = str(self._between(2, 12))
        return value, ("number", value)

    def many(self) -> Drawn:
        value = str(self._between(13, 999))
        return value, ("number", value)

    def thousands(self) -> Drawn:
        value = f"{self._between(1000, 9_999_999):,}"
        return self._in_digits(value), ("number", value)

    def decimal(self) -> Drawn:
        value = f"{self._between(0, 99)}.{self._between(1, 9)}"
        return self._in_digits(value), ("number", value)

    def minus(self) -> Drawn:
        value = f"-{self._between(2, 40)}"
        return self._random.choice("-−") + value[1:], ("number", value)

    def celsius(self) -> Drawn:
        value = self._random.choice(("", "-")) + str(self._between(2, 39))
        sign = value.replace("-", self._random.choice("-−"))
        return f"{sign} °C", ("measure", f"{value} °C")

    def percent(self) -> Drawn:
        value = self._random.choice((f"{self._between(1, 99)}", f"{self._between(0, 19)}.{self._between(1, 99):02d}"))
        return f"{self._in_digits(value)}{' ' * self._is_german}%", ("percent", value)

    def measure(self) -> Drawn:
        value = self._random.choice((str(self._between(2, 900)), f"{self._between(1, 20)}.{self._between(1, 9)}"))
        unit = self._random.choice(_UNITS)
        return f"{self._in_digits(value)} {unit}", ("measure", f"{value} {unit}")

    def megabytes(self) -> Drawn:
        value = f"{self._between(1, 99)}.{self._between(1, 9)}"
        return f"{self._in_digits(value)} MB", ("measure", f"{value} MB")

    def price(self) -> Drawn:
        sign = self._random.choice("$€£₹¥" if not self._is_german else "€€€$£")
        whole = f"{self._between(1, 4999):,}"
        amount = self._random.choice((whole, f"{whole}.{self._between(1, 99):02d}"))
        text = f"{self._in_digits(amount)} {sign}" if self._is_german else sign + amount
        return text, ("price", sign + amount)

    def fortune(self) -> Drawn:
        sign, name = self._random.choice("$€£"), self._random.choice(("million", "billion"))
        amount = f"{self._between(1, 900)}.{self._between(1, 9)}"
        if self._is_german:
            german = {"million": "Millionen", "billion": "Milliarden"}[name]
            return f"{self._in_digits(amount)} {german} {sign}", ("price", f"{sign}{amount} {name}")
        return f"{sign}{amount} {name}", ("price", f"{sign}{amount} {name}")

    def people(self) -> Drawn:
        value = f"{self._between(1, 90)}.{self._between(1, 9)}"
        name = self._random.choice(("million", "billion"))
        german = {"million": "Millionen", "billion": "Milliarden"}[name]
        return f"{self._in_digits(value)} {german if self._is_german else name}", (name, value)

    def prices(self) -> Drawn:
        sign, low = self._random.choice("$€£"), self._between(2, 40)
        high = low + self._between(1, 50)
        numbers = ("price", f"{sign}{low}"), ("price", f"{sign}{high}")
        return f"{sign}{low}–{sign}{high}", *numbers

    def clock(self) -> Drawn:
        hour, minute = self._between(0, 23), self._random.choice((0, 5, 15, 20, 30, 40, 45, 55))
        value = ("time", f"{hour}:{minute:02d}")
        if self._is_german:
            text = f"{hour} Uhr" if minute == 0 else f"{hour}{self._random.choice(':.')}{minute:02d} Uhr"
            return text, value
        half = "am" if hour < 12 else "pm"
        short = (hour - 1) % 12 + 1
        texts = [f"{hour:02d}:{minute:02d}", f"{short}:{minute:02d} {half}", f"{short}:{minute:02d} {half[0]}.m."]
        return self._random.choice(texts if minute else [f"{short} {half}", f"{short}{half}"]), value

    def hours(self) -> Drawn:
        begin, end = self._between(6, 11), self._between(13, 22)
        numbers = ("hours", f"{begin}:00-{end}:00")
        if self._is_german:
            return f"{begin}{self._random.choice(('–', '-', ' bis '))}{end} Uhr", numbers
        return f"{begin}am{self._random.choice(('-', '–', ' - ', ' to '))}{end - 12}pm", numbers

    def date(self) -> Drawn:
        year, month, day = self._between(1950, 2030), self._between(1, 12), self._between(1, 28)
        iso = f"{year}-{month:02d}-{day:02d}"
        name = self._months[month - 1]
        if self._is_german:
            texts = [f"{day}. {name} {year}", f"{day:02d}.{month:02d}.{year}", iso]
        else:
            texts = [f"{name} {day}, {year}", f"{day} {name} {year}", f"{month:02d}/{day:02d}/{year}", iso]
        text = self._random.choice(texts)
        return text, ("date", f"{iso} {text}")

    def year(self) -> Drawn:
        value = str(self._between(1500, 2040))
        return value, ("exact", value)

    def years(self) -> Drawn:
        begin = self._between(1900, 2010)
        end = begin + self._between(1, 15)
        return f"{begin}{self._random.choice('-–')}{end}", ("exact", str(begin)), ("exact", str(end))

    def span(self) -> Drawn:
        low = self._between(2, 40)
        high = low + self._between(1, 20)
        text = f"{low}{self._random.choice('-–')}{high}"
        return text, ("number", str(low)), ("number", str(high))

    def version(self) -> Drawn:
        numbers = [str(self._between(0, 20)) for _ in range(self._between(2, 3))]
        value = self._random.choice(("v", "")) + ".".join(numbers)
        return value, ("exact", value)

    def height(self) -> Drawn:
        value = f"{self._between(4, 6)}'{self._between(1, 11)}"
        return f'{value}"', ("height", value)

    def fraction(self) -> Drawn:
        value = self._random.choice(("1/2", "1/4", "3/4", "1/3", "2/3"))
        return value, ("fraction", value)

    def ordinal(self) -> Drawn:
        value = self._between(2, 40)
        if self._is_german:
            return f"{value}.", ("ordinal", str(value))
        ending = "th" if value // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
        return f"{value}{ending}", ("ordinal", str(value))

    def decade(self) -> Drawn:
        value = str(1960 + 10 * self._between(0, 3))
        text = self._random.choice((value, value[2:]))
        return f"{text}{'er' if self._is_german else 's'}", ("decade", value)

    def score(self) -> Drawn:
        value = f"{self._between(0, 9)}:{self._between(0, 9)}"
        return value, ("score", value)

    def phone(self) -> Drawn:
        value = f"+{self._between(1, 99)} {self._between(100, 999)} {self._between(10000, 9999999)}"
        return value, ("exact", value)

    def sum(self) -> Drawn:
        one, other = self._between(2, 99), self._between(2, 99)
        value = self._random.choice((f"{one} + {other} = {one + other}", f"{one} × {other} = {one * other}"))
        return value, ("exact", value)

    def times(self) -> Drawn:
        value = str(self._between(2, 12))
        return f"{value}x", ("times", value)

    def thousand(self) -> Drawn:
        value = str(self._between(2, 99))
        return f"{value}k", ("thousand", value)
