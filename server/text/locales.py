"""Writes the quantities of a translation as its language does: separators, currencies, percents, units and dates.

A network mostly does so by itself, and at times copies what the source has. Here the source says what a number means,
because each language reads "1,250" in one way; a number of the translation with the same digits is that number if it
has as many decimals, whatever separators the network has written. What may be no quantity stays as the network wrote
it: a decimal number without a currency, unit or magnitude may be a version or a chapter. Nothing is converted: miles
stay miles.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from server.text.quantities import CURRENCIES, UNITS, Quantity, find_quantities

_SEPARATORS: Mapping[str, tuple[str, str]] = {"en": (",", "."), "de": (".", ",")}  # of thousands, and of decimals
_GROUP = 3  # digits between separators of thousands
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_MOST_MONTHS = len(_MONTHS)
_DATE = re.compile(r"(?<![\d./-])(\d{1,2})([./])(\d{1,2})\2(\d{4})(?![\d/-]|\.\d)")
_DATE_SEPARATORS = {"en": "/", "de": "."}
_SIGN = f"[{re.escape(''.join(CURRENCIES))}]"
_UNIT = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
_MAGNITUDE = r"\s(?:million|milliard|billion|trillion|thousand|tausend)\w*|\s(?:mio|mrd)\b\.?"
_WRITTEN = re.compile(
    rf"(?P<before>(?<![^\W_]){_SIGN}\s?)?(?<![\w.,:/])(?P<number>\d+(?:[.,]\d+)*)(?P<magnitude>{_MAGNITUDE})?"
    rf"(?:(?(before)(?!))\s?(?P<after>{_SIGN})|(?P<blank>\s?)(?P<unit>(?-i:{_UNIT}))(?!\w))?",
    re.IGNORECASE,
)

_Date = tuple[int, int, int]  # year, month, day


@dataclass(frozen=True, slots=True)
class Locale:
    """What the quantities of a sentence become.

    Attributes:
        numbers: how numbers are written, by their digits.
        dates: likewise, by their three numbers in ascending order.
        language: of the translation, "en" or "de".
    """

    numbers: Mapping[str, str]
    dates: Mapping[tuple[int, ...], str]
    language: str

    def adapt(self, text: str) -> str:
        """Returns a piece of a translation with its quantities written so. Takes time linear in the piece."""
        pieces, position = [], 0
        for date in _DATE.finditer(text):
            numbers = tuple(sorted(map(int, date.group(1, 3, 4))))
            if numbers in self.dates:
                pieces += [_WRITTEN.sub(self._written, text[position : date.start()]), self.dates[numbers]]
                position = date.end()
        return "".join([*pieces, _WRITTEN.sub(self._written, text[position:])])

    def _written(self, found: "re.Match[str]") -> str:
        number = self.numbers.get(_digits(found["number"]))
        if number is None or not self._is_same(found["number"], number):
            return found[0]
        number += found["magnitude"] or ""
        before, unit = found["before"] or "", found["unit"]
        if unit:
            blank = {"de": " ", "en": "" if unit == "%" else found["blank"]}[self.language]
            return f"{before}{number}{blank}{unit}"
        sign = before.strip() or found["after"] or ""
        if not sign:
            return number
        return f"{number} {sign}" if self.language == "de" else f"{sign}{number}"

    def _is_same(self, written: str, number: str) -> bool:
        """Whether a number, with the digits of one that is written as the language does, may be the same quantity."""
        decimals = number.partition(_SEPARATORS[self.language][1])[2]
        first, *groups = re.split("[.,]", written)
        if decimals:
            return bool(groups) and len(groups[-1]) == len(decimals)
        return not groups or (len(first) <= _GROUP and all(len(group) == _GROUP for group in groups))


def locale_of(source: str, source_language: str, language: str) -> Locale | None:
    """Returns what the quantities of a sentence become; None if there are none, or a language is not known here.

    Args:
        source: the sentence.
        source_language: BCP-47 code.
        language: BCP-47 code of the translation's language.
    """
    codes = source_language.partition("-")[0], language.partition("-")[0]
    if codes[0] == codes[1] or not all(code in _SEPARATORS for code in codes):
        return None
    dates = {tuple(sorted(date)): _date(date, codes[1]) for date in _dates(source, codes[0])}
    numbers = _numbers(find_quantities(source), *codes)
    return Locale(numbers, dates, codes[1]) if numbers or dates else None


def _numbers(quantities: Sequence[Quantity], source_language: str, language: str) -> dict[str, str]:
    """Returns how numbers are written, by their digits, but for digits that stand for two numbers."""
    thousands, decimal = map(re.escape, _SEPARATORS[source_language])
    shape = re.compile(rf"(?P<whole>\d{{1,3}}(?P<grouped>{thousands}\d{{3}})+|\d+)(?:{decimal}(?P<decimals>\d+))?")
    forms: dict[str, set[str]] = {}
    for quantity in quantities:
        found = shape.fullmatch(quantity.number)
        has_belongings = quantity.currency or quantity.unit or quantity.magnitude
        if quantity.is_time or quantity.is_of_date or found is None or not (has_belongings or found["grouped"]):
            form = quantity.number  # then another number with its digits is not certain
            forms.setdefault(_digits(form), set()).update((form, ""))
            continue
        point = _SEPARATORS[language]
        whole = re.sub(r"\D", point[0], found["whole"])
        decimals = f"{point[1]}{found['decimals']}" if found["decimals"] else ""
        forms.setdefault(_digits(quantity.number), set()).add(whole + decimals)
    return {digits: form for digits, (form, *others) in forms.items() if not others}


def _dates(source: str, language: str) -> Iterator[_Date]:
    """Yields the dates of a sentence whose day and month are certain. Of English ones, a day over 12 says so."""
    for found in _DATE.finditer(source):
        first, second, year = map(int, found.group(1, 3, 4))
        if found[2] != _DATE_SEPARATORS[language]:
            continue
        months = {second} if language == "de" else {each for each in (first, second) if each <= _MOST_MONTHS}
        month = min(months, default=0)
        day = first + second - month
        if len(months) == 1 and 1 <= month <= _MOST_MONTHS and 1 <= day <= 31:
            yield year, month, day


def _date(date: _Date, language: str) -> str:
    """Returns a date as a language writes it: in English with a name, because its regions order figures differently."""
    year, month, day = date
    return f"{day}.{month}.{year}" if language == "de" else f"{day} {_MONTHS[month - 1]} {year}"


def _digits(number: str) -> str:
    return re.sub(r"\D", "", number)
