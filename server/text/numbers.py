"""Whether a translation still has the numbers of its source.

Languages write numbers in different ways, so a number counts as present in any right form: with other separators, with
or without leading and idle zeros, as a word up to twelve, as a Roman numeral, in the other clock. A currency sign must
come back as that sign or as the currency's name, and a unit symbol as that symbol or as the unit's name. The check is
lenient: what it reports is missing, but not everything that is wrong is reported.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_DIGITS = re.compile(r"\d+")
_SEPARATORS = ".,'’ \u00a0\u202f"  # noqa: RUF001  # between groups of digits, and before decimals
_NUMBER = rf"\d+(?:[{_SEPARATORS}]\d+)*"
_JOINED = re.compile(_NUMBER)
_UNITS: Mapping[str, tuple[str, ...]] = {  # a symbol, and how names of the unit begin
    "kg": ("kilo", "quilo"),
    "g": ("gram",),
    "mg": ("milligram", "miligram"),
    "km": ("kilomet", "quilómet", "quilômet", "kilómet"),
    "m": ("met", "mèt", "mét"),
    "cm": ("zentimet", "centimet", "centímet"),
    "mm": ("millimet", "milímet"),
    "ml": ("millilit", "mililit"),
    "l": ("lit",),
    "kB": ("kilobyte",),
    "KB": ("kilobyte",),
    "MB": ("megabyte",),
    "GB": ("gigabyte",),
    "TB": ("terabyte",),
    "°C": ("grad", "degree", "grau"),
    "°F": ("grad", "degree", "grau"),
    "%": ("prozent", "percent", "per cent", "por cento", "por ciento", "pour cent"),
}
_CURRENCIES: Mapping[str, tuple[str, ...]] = {  # a sign, and how names of the currency begin
    "$": ("dollar", "dólar", "usd", "us-d"),
    "€": ("euro", "eur"),
    "£": ("pfund", "pound", "libra", "livre", "gbp", "quid"),
    "¥": ("yen", "jpy", "yuan", "cny"),
    "₹": ("rup", "inr"),
}
_TOKEN = re.compile(
    rf"(?P<minus>(?<![\w.,:)-])[-\u2212])?(?P<currency>[{re.escape(''.join(_CURRENCIES))}])?\s?(?P<number>(?<![\d.,])\d+(?:[.,]\d+)*)"
    rf"(?:\s?(?P<half>[ap]m\b|[ap]\.m\.)|\s?(?P<after>[{re.escape(''.join(_CURRENCIES))}])"
    rf"|\s?(?P<unit>{'|'.join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))})(?!\w)"
    r"|(?P<decade>s\b)|(?:st|nd|rd|th|k|bn|h|x)\b)?",
    re.IGNORECASE,
)
_MINUS = re.compile(r"[-\u2212\u2013]\s?[^\w\s]?\s?\d|\b(?:minus|menos|moins|meno)\b", re.IGNORECASE)
_DATE = re.compile(r"(?<![\d/.-])\d{1,4}([/.-])\d{1,2}\1\d{1,4}(?![\d/-])")
_NOON = 12
_AFTERNOON = (
    *("pm", "p.m", "afternoon", "evening", "abend", "nachmittag", "mittag", "nacht", "tarde", "noite", "noche", "soir"),
    "sera",
)
_HALF_OF_DAY = re.compile(r":\d\d\s?([ap]m\b|[ap]\.m\.)", re.IGNORECASE)  # behind the hour
_HALF_PAST, _HALF = (
    re.compile(r"(?<![\d.,:])\d{1,2}[:.]30(?![\d.,:]\d)"),
    ("halb", "half", "mezz", "demi", "media", "meia"),
)
_TIME = re.compile(r"\d{1,2}\.\d\d")
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
    """Returns the numbers of a source that its translation has in no right form, in their order.

    Args:
        source: a sentence.
        translation: of it.
        language: BCP-47 code of the translation's language. Where its number words are not known here, no number up to
            twelve is reported.
    """
    if not _DIGITS.search(source):
        return []
    there = _Numbers(translation, language.partition("-")[0])
    dates, halves = ([match.span() for match in kind.finditer(source)] for kind in (_DATE, _HALF_PAST))
    tokens = list(_TOKEN.finditer(source))
    missing = [
        token
        for token in tokens
        if not there.take(token, is_of_date=_is_in(token, dates), is_half_past=_is_in(token, halves))
    ]
    if not missing:  # a part of a number, beside the number: "2,3bn £2"
        missing = [token for token in tokens if there.has_left(_DIGITS.findall(token["number"]))]
    return [NumberSpan(*_trimmed(token)) for token in missing]


def _is_in(token: "re.Match[str]", spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= token.start("number") < end for start, end in spans)


def _trimmed(token: "re.Match[str]") -> tuple[int, int]:
    first = next(name for name in ("minus", "currency", "number") if token[name])
    return token.start(first), token.end()


class _Numbers:
    """The numbers of a translation, each of which stands for one of the source."""

    def __init__(self, translation: str, language: str) -> None:
        self._text = translation
        self._folded = translation.casefold()
        self._signs = Counter(character for character in translation if character in _CURRENCIES)
        self._taken = Counter[int]()  # of number words
        self._words = _WORDS.get(language, "").split()
        self._left = Counter(_digits(match) for match in _JOINED.findall(translation))
        self._parts = Counter(_digits(match) for match in _DIGITS.findall(translation))

    def take(self, token: "re.Match[str]", *, is_of_date: bool, is_half_past: bool) -> bool:
        """Says whether a number of the source is there, with its currency and unit; it is not there twice."""
        number = token["number"]
        if token["minus"] and not _MINUS.search(self._text):
            return False
        if sign := token["currency"] or token["after"]:
            self._signs[sign] -= 1
            return self._has_number(number) and (self._signs[sign] >= 0 or self._has_name(_CURRENCIES[sign]))
        if unit := token["unit"]:
            return self._has_number(number) and self._has_unit(unit)
        if is_of_date and int(_digits(number)) <= _SMALL:  # a month may have become a name
            return True
        if is_half_past and any(word in self._folded for word in _HALF):
            return True
        has_afternoon = any(word in self._folded for word in _AFTERNOON)
        return any(self._has_number(form) for form in _forms(token, has_afternoon=has_afternoon))

    def has_left(self, parts: Sequence[str]) -> bool:
        """Says whether one of several parts of a number still stands in the translation by itself."""
        return len(parts) > 1 and any(self._left[_digits(part)] > 0 for part in parts)

    def _has_number(self, number: str) -> bool:
        for digits in dict.fromkeys((_digits(number), _digits(_without_idle_zeros(number)))):
            if max(self._left[digits], self._parts[digits]) > 0:
                self._left[digits] -= 1
                self._parts[digits] -= 1
                return True
        parts = [_digits(part) for part in number.split(".")]
        if _TIME.fullmatch(number) and all(self._parts[part] > 0 for part in parts):
            self._left.subtract(parts)
            return True
        return self._is_written_out(number)

    def _is_written_out(self, number: str) -> bool:
        if not number.isdecimal():
            return False
        value = int(number)
        if value <= _SMALL:
            self._taken[value] += 1
            return not self._words or self._taken[value] <= len(re.findall(rf"\b{self._words[value]}", self._folded))
        return value <= _LARGEST_ROMAN and re.search(rf"\b{_roman(value)}\b", self._text) is not None

    def _has_unit(self, unit: str) -> bool:
        symbol = re.escape(unit)
        is_there = re.search(rf"(?:\d|\d\s|[^\w\s]){symbol}(?!\w)|(?<!\w){symbol}(?!\w)", self._text, re.IGNORECASE)
        names = next((names for known, names in _UNITS.items() if known.casefold() == unit.casefold()), ())
        return is_there is not None or self._has_name(names)

    def _has_name(self, beginnings: Iterable[str]) -> bool:
        return any(beginning in self._folded for beginning in beginnings)


def _forms(token: "re.Match[str]", *, has_afternoon: bool) -> Iterator[str]:
    """Yields a number, and what it becomes by the other clock or as a decade.

    Args:
        token: of the source.
        has_afternoon: whether the translation names a time after noon.
    """
    number = token["number"]
    are_minutes = token.string[token.start("number") - 1 : token.start("number")] == ":"
    half = None if are_minutes else token["half"]
    hour = int(number) if number.isdecimal() and len(number) <= 2 else -1
    if half is None and not are_minutes and (behind := _HALF_OF_DAY.match(token.string, token.end())):
        half = behind[1]
    is_late = half is not None and half[0] in "pP"
    if not is_late or hour == _NOON or has_afternoon:
        yield number
    if half is not None and hour >= 0:
        yield str(hour % _NOON + _NOON if is_late else hour % _NOON)
        if hour == _NOON:
            yield "24"
    if _NOON < hour < 2 * _NOON and has_afternoon:
        yield str(hour - _NOON)
    if token["decade"] and number.isdecimal():
        yield number[-2:]


def _digits(number: str) -> str:
    """Returns the digits of a number without separators and leading zeros."""
    return "".join(_DIGITS.findall(number)).lstrip("0") or "0"


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
