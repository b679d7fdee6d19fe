"""Whether a translation still has the numbers of its source.

Languages write numbers in different ways, so a number counts as present in any right form: with other separators, with
or without leading and idle zeros, as a word up to twelve, as a Roman numeral, by the other clock. A currency sign must
come back as that sign or as the currency's name, and so must the symbol of a unit and the name of a magnitude. A number
must not come back more often than the source has it. What is reported is wrong, but not all that is wrong is reported.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from server.text.quantities import CURRENCIES, MAGNITUDES, UNITS, Quantity, find_quantities

_DIGITS = re.compile(r"\d+")
_JOINED = re.compile(r"\d+(?:[.,'\u2019 \u00a0\u202f]\d+)*")
_SEPARATOR = re.compile(r"\D")
_MINUS = re.compile(r"[-\u2212\u2013]\s?[^\w\s]?\s?\d|\b(?:minus|menos|moins|meno)\b", re.IGNORECASE)
_NOON = 12
_AFTERNOON = re.compile(
    r"\b(?:\d\s?pm|p\.m)|pm\b|afternoon|evening|night|abend|nachmittag|mittag|nacht|tarde|noite|noche|soir|sera"
)
_HALF_PAST = re.compile(r"halb|half|mezz|demi|media|meia")
_MONTH = re.compile(
    r"\b(?:jan|fe[bv]|fév|m[aä]r|a[pbv]r|ma[iyg]|jun|jul|juin|juil|a[ug][go]|sep|set|o[ckut]t|out|nov|d[eéi][cz])"
)
_SMALL = 12  # numbers up to it are also written as words
_WORDS: Mapping[str, str] = {  # of 0 to 12; "ein" stands for all that begin with it
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "en": "zero one two three four five six seven eight nine ten eleven twelve",
    "pt": "zero um dois três quatro cinco seis sete oito nove dez onze doze",
    "es": "cero un dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze",
    "it": "zero un due tre quattro cinque sei sette otto nove dieci undici dodici",
}
_ROMAN = (("X", 10), ("IX", 9), ("V", 5), ("IV", 4), ("I", 1))
_LARGEST_ROMAN = 39


@dataclass(frozen=True, slots=True)
class NumberSpan:
    """A number with what belongs to it, such as "$5", "20 kg" or "9am": where it stands in the source."""

    start: int
    end: int


def missing_numbers(source: str, translation: str, language: str) -> list[NumberSpan]:
    """Returns the numbers of a source that its translation has in no right form, or too often, in their order.

    Args:
        source: a sentence.
        translation: of it.
        language: BCP-47 code of the translation's language. Where its number words are not known here, no number up to
            twelve is reported.
    """
    if not _DIGITS.search(source):
        return []
    there = _Numbers(translation, language.partition("-")[0])
    quantities = find_quantities(source)
    # Those with separators come first: no part of one that stands for such a number stands for another, too.
    ordered = sorted(enumerate(quantities), key=lambda each: _SEPARATOR.search(each[1].number) is None)
    wrong = {index for index, quantity in ordered if not there.take(quantity)}
    wrong = wrong or {index for index, quantity in enumerate(quantities) if there.has_left(quantity)}
    for index, quantity in enumerate(quantities):  # of a range both
        if quantity.continues and {index - 1, index} & wrong:
            wrong |= {index - 1, index}
    return [NumberSpan(quantities[index].start, quantities[index].end) for index in sorted(wrong)]


class _Numbers:
    """The numbers of a translation, each of which stands for one of the source."""

    def __init__(self, translation: str, language: str) -> None:
        self._text = translation
        self._folded = translation.casefold()
        self._signs = {sign: translation.count(sign) for sign in CURRENCIES}
        self._words_taken: Counter[int] = Counter()
        self._words = _WORDS.get(language, "").split()
        joined = _JOINED.findall(translation)
        self._left = Counter(map(_digits, joined))
        self._parts = Counter(map(_digits, _DIGITS.findall(translation)))
        self._written = {_digits(each): each for each in joined}

    def take(self, quantity: Quantity) -> bool:
        """Says whether a number of the source is there, with what belongs to it; it is not there twice."""
        if quantity.has_minus and not _MINUS.search(self._text):
            return False
        if quantity.is_time:
            return self._has_time(quantity)
        if quantity.is_of_date and int(_digits(quantity.number)) <= _SMALL and _MONTH.search(self._folded):
            return True  # it has become a name
        forms = [quantity.number, quantity.number[-2:]] if quantity.is_decade else [quantity.number]
        return any(map(self._has_number, forms)) and self._has_belongings(quantity)

    def has_left(self, quantity: Quantity) -> bool:
        """Says whether a number of the source, or a part of it, still stands in the translation by itself."""
        left = [digits for digits, count in self._left.items() if count > 0]
        if not left:
            return False
        parts = [_digits(part) for part in _DIGITS.findall(f"{quantity.number}:{quantity.minute}")]
        whole = _digits(quantity.number)
        return any(digits in (whole, *parts) or (len(parts) > 1 and whole.startswith(digits)) for digits in left)

    def _has_belongings(self, quantity: Quantity) -> bool:
        if quantity.magnitude and not self._has_name(MAGNITUDES[quantity.magnitude]):
            return False
        if quantity.unit and not self._has_unit(quantity.unit):
            return False
        sign = quantity.currency
        if not sign or quantity.continues:  # a range may have its sign once
            return not sign or sign in self._text or self._has_name(CURRENCIES[sign])
        self._signs[sign] -= 1
        return self._signs[sign] >= 0 or self._has_name(CURRENCIES[sign])

    def _has_time(self, time: Quantity) -> bool:
        if time.minute == "30" and _HALF_PAST.search(self._folded):
            return True
        if time.minute and re.search(rf"\b\d+,{time.minute}\b", self._text):  # that is no time
            return False
        has_minute = not time.minute or self._has_number(time.minute) or time.minute == "00"
        return has_minute and any(map(self._has_number, self._hours(time)))

    def _hours(self, time: Quantity) -> Iterator[str]:
        """Yields the hour of a time in the forms that are right in this translation."""
        hour = int(time.number)
        of_24 = hour % _NOON + _NOON if time.half_of_day == "p" else hour % _NOON if time.half_of_day else hour
        marked = re.search(rf"\b{hour}(?:[:.,]\d\d)?\s?([ap])\.?m\b", self._folded)
        is_marked_late = marked is not None and marked[1] == "p"
        is_wrong = marked is not None if of_24 > _NOON else time.is_of_24_hours and is_marked_late
        if not is_wrong:
            yield str(of_24)
        if time.half_of_day and of_24 == 0:
            yield "24"
        if _AFTERNOON.search(self._folded) if of_24 > _NOON else not is_wrong and (of_24 > 0 or marked is not None):
            yield str((of_24 - 1) % _NOON + 1)

    def _has_number(self, number: str) -> bool:
        for digits in dict.fromkeys((_digits(number), _digits(_without_idle_zeros(number)))):
            if max(self._left[digits], self._parts[digits]) > 0:
                if self._is_misshapen(number, digits):
                    return False
                written = self._written[digits] if self._left[digits] > 0 else digits
                self._left[digits] -= 1
                self._parts.subtract(map(_digits, _DIGITS.findall(written)))
                return True
        return self._is_written_out(number)

    def _is_misshapen(self, number: str, digits: str) -> bool:
        """Whether digits are grouped so that they mean another number: neither 8.771,388 nor 8771.388 is 8,771,388."""
        shape, written = _shape(number), self._written.get(digits, "")
        if shape is None or not _SEPARATOR.search(written):
            return False
        return _shape(written) is not shape if _shape(written) is not None else not shape

    def _is_written_out(self, number: str) -> bool:
        if not number.isdecimal():
            return False
        value = int(number)
        if value <= _SMALL:
            self._words_taken[value] += 1
            there = len(re.findall(rf"\b{self._words[value]}", self._folded)) if self._words else value
            return not self._words or self._words_taken[value] <= there
        return value <= _LARGEST_ROMAN and re.search(rf"\b{_roman(value)}\b", self._text) is not None

    def _has_unit(self, unit: str) -> bool:
        symbol = re.escape(unit)
        is_there = re.search(rf"(?:\d|[^\w\s]){symbol}(?!\w)|(?<!\w){symbol}(?!\w)", self._text)
        return is_there is not None or self._has_name(UNITS[unit])

    def _has_name(self, beginnings: Iterable[str]) -> bool:
        return any(re.search(rf"(?<![^\W\d]){re.escape(beginning)}", self._folded) for beginning in beginnings)


def _digits(number: str) -> str:
    """Returns the digits of a number without separators and leading zeros."""
    return "".join(_DIGITS.findall(number)).lstrip("0") or "0"


def _shape(number: str) -> bool | None:
    """Whether a number's last separator is another than its first, as before decimals; None for fewer than two."""
    separators = _SEPARATOR.findall(number)
    return separators[0] != separators[-1] if len(separators) > 1 else None


def _without_idle_zeros(number: str) -> str:
    """Returns 5 for 5.00 and 2.5 for 2.50."""
    whole, point, decimals = number.rpartition(".")
    if not point or not 1 <= len(decimals) <= 2:
        return number
    kept = decimals.rstrip("0")
    return f"{whole}.{kept}" if kept else whole


def _roman(value: int) -> str:
    written = ""
    for letters, worth in _ROMAN:
        while value >= worth:
            written += letters
            value -= worth
    return written
