r"""What numbers are right in a translation into German, English or Portuguese: judged by form, not by `server.text`.

A line names its numbers, each a kind and the value in English notation. Each has patterns of the ways to write it in
the target's language; each takes its own place in the translation, longest first, and no digit may be left over.

- `number`: as `copied.py` says: 12,500 is 12.500, 12 500 or 12500, 2.5 is 2,5; a sign belongs to it. Whole numbers up
  to twenty, and tens, may be words.
- `exact` (versions, years, telephones, sums): character for character, blanks apart.
- `percent`, `price`, `measure`: a number with its sign, symbol or name. Another currency or unit is never equal, nor is
  a conversion right.
- `time`: the same minute of the day; half of the day may be told by the other end of a range. `hours`: two that stay
  together.
- `date`: day, month and year, in any usual order; where both could be months, numbers stand in the source's order with
  slashes, or in the target's usual one.
- `ordinal`, `decade`, `fraction`, `height` (feet'inches), `score`, `million`, `billion`, `times` (2x) and
  `thousand` (10k).
"""

import re
from collections.abc import Sequence

from tests.acceptance.number_words import (
    CURRENCIES,
    FRACTIONS,
    MONTHS,
    ORDINALS,
    UNITS,
    ordinal_pattern,
    word_pattern,
)

_TAKEN = "■"  # stands where a number was found
_BEFORE = r"(?<![^\W_])(?<!\d[.,:/])(?<!(?<![\d■])\s[-−]\s)(?<!(?<![\d■])[-−])(?<!minus\s)(?<!menos\s)"
_BEHIND = r"(?!\d|[.,:/]\d)"
_MINUS = r"(?:(?<![\w\d])[-−–]\s?|\bminus\s|\bmenos\s|\bnegative\s)"
_DASH = r"\s?(?:[-–—−]|to|bis|a|até|às|e|und|and|ou|or|oder)\s?(?:às\s|as\s|a\s)?"
_MILLION = {
    "million": r"\s?(?:Millionen|Million|Mio\.?|millions?|milhões|milhão|mi\b|m\b)",
    "billion": r"\s?(?:Milliarden|Milliarde|Mrd\.?|billions?|bn\b|bilhões|bilhão|mil milhões|bi\b|b\b)",
}
_CLOCK = r"(?:\s?(?:Uhr\b|h\b|hrs\b|horas?\b|o'clock))"
_LATE = (
    rf"(?:{_CLOCK}?\s?(?:p\.?\s?m\b\.?|abends|nachmittags|nachts|am Abend|am Nachmittag|d[ae] (?:noite|tarde)"
    r"|in the (?:evening|afternoon)|at night))"
)
_EARLY = (
    rf"(?:{_CLOCK}?\s?(?:a\.?\s?m\b\.?|morgens|früh|vormittags|am Morgen|d[ae] (?:manhã|madrugada)|in the morning))"
)


def wrong_numbers(numbers: Sequence[tuple[str, str]], translation: str, language: str) -> list[str]:
    """Returns the values that a translation has in no right form, and "+" with what it has beside them.

    Args:
        numbers: kinds and values, as the source has them.
        translation: of the line.
        language: "de", "en" or "pt".

    Raises:
        ValueError: there is no such kind.
    """
    left = translation.replace("\u00a0", " ").replace("\u202f", " ")
    wrong = []
    for kind, value in sorted(numbers, key=lambda number: (_ORDER.index(number[0]), -len(number[1]))):
        for pattern in _FORMS[kind](value, language):
            if found := re.search(pattern, left, re.IGNORECASE):
                left = left[: found.start()] + _TAKEN + left[found.end() :]
                break
        else:
            wrong.append(value)
    beside = re.findall(r"\d[\d.,:/]*", left)
    return [*wrong, *(f"+{digits}" for digits in beside)]


def written(value: str) -> list[str]:
    """Returns patterns of the ways to write a number in digits, longest first.

    Args:
        value: in English notation, without a sign.
    """
    whole, _, decimals = value.partition(".")
    digits = whole.replace(",", "")
    groups = [digits]
    if len(digits) > 3:
        groups += [separator.join(f"{int(digits):,}".split(",")) for separator in (r"\.", ",", " ")]
    if decimals:
        groups = [rf"{group}[.,]{decimals}" for group in groups]
    return sorted(groups, key=len, reverse=True)


def _amount(value: str) -> str:
    sign = _MINUS if value[0] in "-−" else _BEFORE
    return f"{sign}(?:{'|'.join(written(value.lstrip('-−')))})"


def _number(value: str, language: str) -> list[str]:
    patterns = [rf"{_amount(value)}{_BEHIND}(?!\s?(?:%|Prozent\b|per ?cent\b|por cento\b))"]
    words = word_pattern(value, language)
    return [*patterns, words] if words else patterns


def _exact(value: str, _language: str) -> list[str]:
    pieces = [re.escape(piece) for piece in re.findall(r"[^\W_]+|[^\w\s]", value)]
    sign = r"\s?[-−–]\s?"
    body = r"\s?".join(pieces).replace(r"\s?\-\s?", sign).replace(r"\s?−\s?", sign).replace("×", "[×x*·]")
    return [rf"(?<![^\W_]){body}(?!\d|[.,]\d)"]


def _percent(value: str, _language: str) -> list[str]:
    return [rf"{_amount(value)}[\s-]?(?:%|Prozent|prozent|per ?cent|por cento)"]


def _price(value: str, _language: str) -> list[str]:
    """A sign and an amount, or an amount with "million" or "billion" behind it."""
    names = CURRENCIES[value[0]]
    amount, _, large = value[1:].partition(" ")
    whole, _, decimals = amount.partition(".")
    ways = written(amount)
    if decimals in ("", "00"):
        ways = [*(f"{way}[.,]00" for way in written(whole)), *written(whole)]
    digits = f"(?:{'|'.join(ways)})" + (_MILLION[large] + r"(?: de)?" if large else _BEHIND)
    within = [rf"{_BEFORE}(?:{'|'.join(ways)})\s?(?:{names}){_MILLION[large]}"] if large else []
    return [rf"(?<![\d.,])(?:{names})\s?{digits}", rf"{_BEFORE}{digits}[\s-]?(?:{names})", *within]


def _measure(value: str, language: str) -> list[str]:
    amount, unit = value.split(" ", 1)
    symbol = rf"(?-i:{re.escape(unit)})(?![^\W\d_]|[²³])"
    ending = rf"[\s-]?(?:{symbol}|{UNITS[unit]})"
    words = word_pattern(amount, language)
    return [_amount(amount) + ending, *([words + ending] if words else [])]


def _time(value: str, _language: str) -> list[str]:
    """Value: hours, a colon, minutes, of a day of 24 hours."""
    hour, minute = map(int, value.split(":"))
    minutes = rf"(?:[:.]|\s?h\s?|\s?Uhr\s){minute:02d}(?:\s?min\b)?"
    before, behind = r"(?<![\d.,:/])(?<![^\W\d_])", r"(?!\d|[.,:]\d)"
    exact = rf"{before}0?{hour}{minutes}{behind}"
    bare = exact if minute else rf"{before}0?{hour}(?:{minutes})?{behind}"
    short = rf"{before}0?{(hour - 1) % 12 + 1}(?:{minutes}){'' if minute else '?'}{behind}"
    other_end = rf"{_DASH}\d{{1,2}}(?:[:.h]\d\d)?"
    if hour < 12:
        patterns = [
            rf"(?:{bare}|{short}){_EARLY}",
            rf"{bare}(?:{_CLOCK})(?!{_LATE})",
            rf"{exact}(?!{_LATE})",
            rf"{bare}(?={other_end}(?:{_EARLY}|{_CLOCK}(?!{_LATE})))",
            rf"{bare}(?={_DASH}(?:1[3-9]|2[0-4])(?:[:.h]\d\d)?{_LATE})",
        ]
    else:
        patterns = [
            rf"{short}{_LATE}",
            rf"{bare}(?:{_CLOCK}|{_LATE})(?!{_EARLY})",
            rf"{exact}(?!{_EARLY})",
            rf"{bare}(?={other_end}(?:{_CLOCK}|{_LATE}))",
            rf"{short}(?={other_end}{_LATE})",
            rf"(?:heute Abend|abends|nachmittags) um {short} Uhr",
        ]
    names = {"12:00": r"\b(?:noon|meio-dia|mittags)\b", "0:00": r"\b(?:midnight|meia-noite|Mitternacht|24 Uhr|24:00)\b"}
    return [*patterns, names[value]] if value in names else patterns


def _hours(value: str, language: str) -> list[str]:
    """Value: two times with a hyphen; they stay together."""
    begin, end = (_time(time, language) for time in value.split("-"))
    return [rf"(?:{'|'.join(begin)})(?:{_DASH})(?:{'|'.join(end)})"]


def _date(value: str, _language: str) -> list[str]:
    """Value: year, month and day with hyphens, and behind a blank how the source writes it."""
    iso, _, source = value.partition(" ")
    year, month, day = map(int, iso.split("-"))
    names = MONTHS[month - 1]
    d, m = f"0?{day}", f"0?{month}"
    behind = r"(?!\d)"
    patterns = [
        re.escape(source) + behind,
        iso,
        rf"{d}(?:\.|st|nd|rd|th|º)?\s?(?:of |de )?(?:{names})\.?,?(?: de| of)? {year}",
        rf"(?:{names})\.? {d}(?:st|nd|rd|th)?,? {year}",
        rf"(?<!\d){d}([./-])\s?{m}\1\s?{year}",
    ]
    return [*patterns, rf"(?<!\d){m}([./-]){d}(?:\1){year}"] if day > 12 else patterns


def _ordinal(value: str, language: str) -> list[str]:
    patterns = [rf"{_BEFORE}{value}{ordinal_pattern(language)}"]
    words = ORDINALS[language].split("|")
    if int(value) <= len(words):
        patterns.append(rf"\b(?:{words[int(value) - 1]})")
    return [*patterns, r"\bXXI\b"] if value == "21" else patterns


def _decade(value: str, _language: str) -> list[str]:
    short = value[-2:]
    names = {"60": "sechzig|sixties", "70": "siebzig|seventies", "80": "achtzig|eighties", "90": "neunzig|nineties"}
    ends = r"(?:er(?:n|[-\s]?Jahren?)?\b|['’]?s\b)"
    years = rf"\banos (?:19)?{short}\b|\bdécada de (?:19)?{short}\b|\banos {names[short]}"
    return [rf"(?<!\d)(?:{value}|['’]?{short}){ends}", years, rf"\b(?:{names[short]})"]


def _fraction(value: str, _language: str) -> list[str]:
    one, other = value.split("/")
    return [rf"(?<![\d/]){one}\s?[/⁄]\s?{other}(?!\d)", FRACTIONS[value]]


def _height(value: str, _language: str) -> list[str]:
    feet, inches = value.split("'")
    prime = "['’′‘]"
    joint = r"[,\s-]*(?:und |and |e )?"
    return [
        rf"(?<!\d){feet}\s?{prime}\s?{inches}(?:\s?[\"”“″]|{prime}{prime})?",
        rf"(?<!\d){feet}[\s-]?(?:Fuß|feet|foot|ft\.?|pés){joint}{inches}(?:[\s-]?(?:Zoll|inch(?:es)?|in\b|polegadas))?",
    ]


def _score(value: str, _language: str) -> list[str]:
    one, other = value.split(":")
    return [rf"(?<![\d.,:]){one}\s?(?::|-|–|to|zu|a|x)\s?{other}(?!\d)"]


def _large(name: str, value: str, language: str) -> list[str]:
    words = word_pattern(value, language)
    return [f"{_amount(value)}{_MILLION[name]}", *([f"{words}{_MILLION[name]}"] if words else [])]


def _times(value: str, language: str) -> list[str]:
    twice = {"2": "|zweimal|doppelt|twice|duas vezes|dobro", "3": "|dreimal|dreifach|three times|três vezes|triplo"}
    return [rf"(?<!\d){value}\s?[x×](?![^\W\d_])|(?<!\d){value}[\s-]?(?:mal|fach|times|vezes)\b{twice.get(value, '')}"]


def _thousand(value: str, _language: str) -> list[str]:
    return [rf"(?<!\d){value}[\s-]?k\b|(?<!\d){value}[., ]?000(?!\d)|(?<!\d){value}\s?(?:Tausend|thousand|mil)\b"]


_FORMS = {
    "date": _date,
    "price": _price,
    "exact": _exact,
    "height": _height,
    "hours": _hours,
    "time": _time,
    "percent": _percent,
    "measure": _measure,
    "million": lambda value, language: _large("million", value, language),
    "billion": lambda value, language: _large("billion", value, language),
    "thousand": _thousand,
    "decade": _decade,
    "fraction": _fraction,
    "score": _score,
    "times": _times,
    "ordinal": _ordinal,
    "number": _number,
}
_ORDER = list(_FORMS)
