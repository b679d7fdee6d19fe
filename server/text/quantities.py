"""The numbers of a text, each with what belongs to it: a sign, a currency, a unit, a magnitude, a half of the day."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

CURRENCIES: Mapping[str, tuple[str, ...]] = {  # a sign, and how names of the currency begin
    "$": ("dollar", "dólar", "usd", "us-d"),
    "€": ("euro", "eur"),
    "£": ("pfund", "pound", "libra", "livre", "gbp", "quid"),
    "¥": ("yen", "jpy", "yuan", "cny"),
    "₹": ("rup", "inr"),
}
UNITS: Mapping[str, tuple[str, ...]] = {  # a symbol, and how names of the unit begin
    "kg": ("kilo", "quilo"),
    "g": ("gram",),
    "mg": ("milligram", "miligram"),
    "km": ("kilomet", "quilómet", "quilômet", "kilómet"),
    "m": ("met", "mèt", "mét"),
    "cm": ("zentimet", "centimet", "centímet"),
    "mm": ("millimet", "milímet"),
    "ml": ("millilit", "mililit"),
    "l": ("lit",),
    "°C": ("grad", "degree", "grau"),
    "°F": ("grad", "degree", "grau"),
    "%": ("prozent", "percent", "per cent", "por cento", "por ciento", "pour cent"),
    "mph": ("meile", "mile", "milha"),
    "ft": ("fuß", "fuss", "feet", "foot", "pés", "pieds"),
    "lb": ("pfund", "pound", "libra"),
    "lbs": ("pfund", "pound", "libra"),
    "oz": ("unze", "ounce", "onça"),
    "kB": ("kilobyte",),
    "KB": ("kilobyte",),
    "MB": ("megabyte",),
    "GB": ("gigabyte",),
    "TB": ("terabyte",),
    **dict.fromkeys(
        ("km/h", "m/s", "km\u00b2", "m\u00b2", "m\u00b3", "cm\u00b2", "kWh", "MWh", "Wh", "kW", "MW", "GW", "mW"), ()
    ),
    **dict.fromkeys(("kV", "mV", "kHz", "MHz", "GHz", "Hz", "hPa", "kPa", "dB", "kcal", "kJ", "mA", "mAh"), ()),
    **dict.fromkeys(("px", "rpm", "dpi", "fps", "Mbit/s", "Gbit/s", "kbit/s", "kbps", "Mbps", "Gbps"), ()),
}
MAGNITUDES: Mapping[str, tuple[str, ...]] = {  # how names of a power of ten begin, and how those of other languages do
    "million": ("million", "milh", "mill", "mio", "mln", "mn"),
    "milliard": ("milliard", "billion", "mrd", "bn", "bilh", "mil milh", "mil mill"),
    "billion": ("milliard", "billion", "mrd", "bn", "bilh", "mil milh", "mil mill"),
    "trillion": ("billion", "trillion", "trilh", "bill"),
    "thousand": ("tausend", "thousand", "mil"),
    "tausend": ("tausend", "thousand", "mil"),
}
_SIGNS = re.escape("".join(CURRENCIES))
_HALF = r"\s?(?P<{}>[ap])(?:m\b|\.m\.)"
_UNIT = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
_QUANTITY = re.compile(
    rf"(?=[\d{_SIGNS}\u2212-])(?:"  # elsewhere nothing is tried
    r"(?P<hour>(?<![\d.,:])\d{1,2})"
    rf"(?::(?P<minute>\d\d)(?![\d:])(?:{_HALF.format('half')}|\s?(?P<uhr>Uhr)\b)?|(?:\.(?P<dotted>\d\d))?(?:\s?(?P<hour_uhr>Uhr)\b|{_HALF.format('hour_half')}))"
    rf"|(?P<minus>(?<![\w.,:)-])[-\u2212])?(?:(?P<currency>[{_SIGNS}])\s?)?(?P<number>(?<![\d.,])\d+(?:[.,]\d+)*)"
    rf"(?:\s(?P<magnitude>(?:{'|'.join(MAGNITUDES)})\w*))?"
    rf"(?:\s?(?P<after>[{_SIGNS}])|\s?(?P<unit>(?-i:{_UNIT}))(?!\w)"
    r"|(?P<decade>s\b)|(?:st|nd|rd|th|k|bn|h|x)\b)?)",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d(?<![\d/.-].)\d{0,3}([/.-])\d{1,2}\1\d{1,4}(?![\d/-])")
_RANGE = re.compile(r"\s?[-\u2013\u2014]\s?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number of a text, with what belongs to it.

    Attributes:
        start, end: where it stands.
        number: as it is written, without signs; of a time of day its hour.
        minute: of a time of day, two digits; empty for others, and for a full hour.
        is_time: whether it is a time of day.
        half_of_day: "a", "p", or empty.
        is_of_24_hours: whether it is a time of day by that clock, as with "Uhr".
        has_minus: whether a minus sign stands before it.
        currency, unit: its symbol, or empty.
        magnitude: key of `MAGNITUDES`, or empty.
        is_decade: whether it is written as "1990s".
        is_of_date: whether it is part of a date in figures.
        continues: whether it is the second of a range, such as "$5-$10".
    """

    start: int
    end: int
    number: str
    minute: str = ""
    is_time: bool = False
    half_of_day: str = ""
    is_of_24_hours: bool = False
    has_minus: bool = False
    currency: str = ""
    unit: str = ""
    magnitude: str = ""
    is_decade: bool = False
    is_of_date: bool = False
    continues: bool = False


def find_quantities(text: str) -> list[Quantity]:
    """Returns the numbers of a text, in order."""
    in_dates = {index for match in _DATE.finditer(text) for index in range(*match.span())}
    found: list[Quantity] = []
    for match in _QUANTITY.finditer(text):
        first = next(name for name in ("hour", "minus", "currency", "number") if match[name])
        start = match.start(first)
        is_range = bool(found) and _RANGE.fullmatch(text, found[-1].end, start) is not None
        if match["hour"]:
            found.append(
                Quantity(
                    start=start,
                    end=match.end(),
                    number=match["hour"],
                    minute=match["minute"] or match["dotted"] or "",
                    is_time=True,
                    is_of_24_hours=bool(match["uhr"] or match["hour_uhr"]),
                    half_of_day=(match["half"] or match["hour_half"] or "").lower(),
                    continues=is_range,
                )
            )
            continue
        magnitude = (match["magnitude"] or "").lower()
        found.append(
            Quantity(
                start=start,
                end=match.end(),
                number=match["number"],
                has_minus=match["minus"] is not None,
                currency=match["currency"] or match["after"] or "",
                unit=match["unit"] or "",
                magnitude=next((name for name in MAGNITUDES if magnitude.startswith(name)), ""),
                is_decade=match["decade"] is not None,
                is_of_date=start in in_dates,
                continues=is_range,
            )
        )
    return found
