r"""What counts as copied: the one place that says so, for the lines of `tests/data/copying.tsv`.

A line is copied if its translation holds each part that it names exactly as often as the line does. A part is held

- by kind url, email, code, emoji, placeholder: character for character, and not within something longer of its kind
  (`https://example.org/a` is not in `https://example.org/ab`, nor `{name}` in `{{name}}`, nor an emoji in one with
  another skin). Behind a code a hyphen and a letter may follow, as in `ISO 9001-Norm`; a code's digits may not go on.
- by kind number: character for character, or with a decimal comma (2.5 -> 2,5), and with its groups of thousands
  parted by stops or spaces or not at all (12,500 -> 12.500, 12 500, 12500; 10000 -> 10.000, but never a year's 2024 ->
  2.024). A minus sign and a percent sign belong to the number; "15 %" and "15 Prozent" are 15%, "-18" may have a real
  minus sign, or "minus". Number words are not copies, and units are not looked at. (A German reader may take 12,500
  for twelve and a half; it is accepted all the same: a copy is what is asked for.)
- by kind price: such a number with its currency before or behind it, as a sign, a word or a code ($5 -> 5 $, 5 Dollar,
  5 US-Dollar, USD 5). Cents that are none may come or go ($5 -> 5,00 $; $5.00 -> 5 $). Another currency is never equal.
- by kind time: what means the same minute of the day: 7 pm -> 19 Uhr, 19:00, 19.00 Uhr, 7 pm, 7 Uhr abends, heute Abend
  um 7 Uhr; 9 am -> 9 Uhr, um 9 Uhr morgens, 9 bis 17 Uhr; 7:30 pm -> 19:30, 19 Uhr 30. "7 Uhr" alone is not 7 pm. Words
  ("halb acht") do not say which half of the day they mean, and are not copies.

White space between a number and what belongs to it may be any, or none.
"""

import re
from collections import Counter
from collections.abc import Sequence

_ADDRESS = (r"(?<![\w./@+-])", r"(?![\w/@#%=&~+-]|[.:,;?!]\w)")
_AROUND = {  # what must not stand before and behind a part
    "url": _ADDRESS,
    "email": _ADDRESS,
    "code": (r"(?<!\w)(?<!\w[-._/\\])", r"(?!\w|[._/\\:@]\w|-\d)"),
    "emoji": ("(?<!\u200d)", "(?![\u200d\ufe0f\U0001f3fb-\U0001f3ff])"),
    "placeholder": (r"(?<![%${\[<])", r"(?!(?<=\w)\w|[}\]>])"),
}
KINDS = (*_AROUND, "number", "price", "time")

_BEFORE_NUMBER, _BEHIND_NUMBER = r"(?<!\w)(?<!\d[.,])(?<!\s[-−])(?<!minus )", r"(?!\w|[.,]\d)"
_NUMBER = re.compile(r"(-?)([\d,]+)(?:\.(\d+))?(%?)")
_PRICE = re.compile(r"([$€£]?)([\d,]+(?:\.\d\d)?) ?(\w*)")
_CURRENCIES = {
    "$": r"(?:US-?)?\$|(?:US-)?Dollars?|USD",
    "€": r"€|Euros?|EUR",
    "£": r"£|(?:britische )?Pfund|pounds|GBP",
    "dollars": r"(?:US-?)?\$|(?:US-)?Dollars?|USD",
    "euros": r"€|Euros?|EUR",
    "francs": r"Francs?|(?:Schweizer )?Franken|CHF|SFr\.?|Fr\.",
    "cents": r"Cents?|ct\.?|¢",
}
_TIME = re.compile(
    r"""(?<![\w.,:/])(?<!\D-)
    (?:(?P<earlier>nachmittags?|abends?|mittags?)\s+(?:um|gegen|ab|bis|von|nach|vor)\s+)?
    (?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?(?![\d%€$£]|[.,:]\d)
    (?P<clock>\s*Uhr\b(?:\s*(?P<spoken>\d\d)(?!\d))?)?
    (?:\s*(?P<half>[ap]\.?m\b\.?)(?!\s+(?-i:[A-ZÄÖÜ])))?  # nor "12 Uhr am Montag"
    (?:\s*(?:am\s+|in\ the\ )?
       (?P<later>morgens?|früh|vormittags?|mittags?|nachmittags?|abends?|nachts|morning|afternoon|evening)\b)?
    (?P<range>(?=\s*(?:bis|[-–])\s*\d{1,2}(?:[:.]\d\d)?\s*Uhr))?""",
    re.VERBOSE | re.IGNORECASE,
)
_LATE = re.compile("nachmittag|abend|mittag|afternoon|evening", re.IGNORECASE)


def is_copied(kind: str, parts: Sequence[str], translation: str) -> bool:
    """Tells whether a translation holds each part exactly as often as it is listed.

    Args:
        kind: One of `KINDS`.
        parts: As they stand in the source.
        translation: Of the whole line.

    Raises:
        ValueError: A part does not read as its kind, or there is no such kind.
    """
    return all(_occurrences(kind, part, translation) == count for part, count in Counter(parts).items())


def _occurrences(kind: str, part: str, translation: str) -> int:
    if kind == "time":
        return read_times(translation).count(_only_time(part))
    if kind == "number":
        pattern = _number_pattern(part)
    elif kind == "price":
        pattern = _price_pattern(part)
    elif kind in _AROUND:
        before, behind = _AROUND[kind]
        return len(re.findall(before + re.escape(part) + behind, translation))
    else:
        raise ValueError(f'there is no kind "{kind}"; there are {", ".join(KINDS)}')
    return len(re.findall(pattern, translation, re.IGNORECASE))


def _number_pattern(part: str) -> str:
    parsed = _NUMBER.fullmatch(part)
    if not parsed:
        raise ValueError(f'"{part}" is not a number')
    sign, whole, decimals, percent = parsed.groups()
    behind = r"\s?(?:%|Prozent\b)" if percent else _BEHIND_NUMBER + r"(?!\s?(?:%|Prozent\b))"
    return _BEFORE_NUMBER + (r"(?:[-−–]|minus\s)" if sign else "") + f"(?:{'|'.join(_ways(whole, decimals))})" + behind


def _price_pattern(part: str) -> str:
    parsed = _PRICE.fullmatch(part)
    currency = _CURRENCIES.get(parsed[1] or parsed[3]) if parsed else None
    if not parsed or not currency:
        raise ValueError(f'"{part}" is not a price')
    whole, _, decimals = parsed[2].partition(".")
    ways = _ways(whole, decimals)
    if decimals in ("", "00"):
        ways = [*_ways(whole, "00"), *(f"{way}(?:,[-–]+)?" for way in _ways(whole, ""))]
    amount = f"(?:{'|'.join(ways)})"
    return (
        rf"{_BEFORE_NUMBER}(?:{currency})\s?{amount}{_BEHIND_NUMBER}"
        rf"|{_BEFORE_NUMBER}(?<![$€£]){amount}[\s-]?(?:{currency})(?!\w)"
    )


def _ways(whole: str, decimals: str | None) -> list[str]:
    """Returns patterns of the ways to write a number, longest first, so that none hides another."""
    digits = whole.replace(",", "")
    groups = [re.escape(whole), digits]
    if "," in whole or len(digits) > 4:
        thousands = f"{int(digits):,}".split(",")
        groups += [r"\.".join(thousands), r"\s".join(thousands)]
    if not decimals:
        return groups
    return [rf"{re.escape(whole)}\.{decimals}", *(f"{group},{decimals}" for group in groups if "," not in group)]


def read_times(text: str) -> list[int]:
    """Returns the times of day that a text names in digits, English or German, as minutes since midnight."""
    return [
        minute
        for found in _TIME.finditer(text)
        if any(found[name] is not None for name in ("minute", "clock", "half", "later", "range"))
        if (minute := _minute_of_day(found)) is not None
    ]


def _minute_of_day(found: "re.Match[str]") -> int | None:
    hour, minute = int(found["hour"]), int(found["minute"] or found["spoken"] or 0)
    half = (found["half"] or "").lower()
    if half.startswith("a") and hour == 12:
        hour = 0
    if hour < 12 and (half.startswith("p") or _LATE.match(found["later"] or found["earlier"] or "")):
        hour += 12
    return (hour % 24) * 60 + minute if hour <= 24 and minute < 60 else None


def _only_time(part: str) -> int:
    times = read_times(part)
    if len(times) != 1:
        raise ValueError(f'"{part}" is not a time')
    return times[0]
