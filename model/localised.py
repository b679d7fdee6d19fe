"""Random numbers, prices, times and dates as each language writes them: what a translation changes by rule alone.

"at half past seven" is "um halb acht", "$1,234.50" is "1.234,50 $": parallel text holds too few of them to learn by.
Words agree with nothing around them, so that they fit into any sentence.
"""

import random
from collections.abc import Callable

Localised = dict[str, str]  # by language code, the same thing

_MONTHS = (
    ("January", "Januar"),
    ("February", "Februar"),
    ("March", "März"),
    ("April", "April"),
    ("May", "Mai"),
    ("June", "Juni"),
    ("July", "Juli"),
    ("August", "August"),
    ("September", "September"),
    ("October", "Oktober"),
    ("November", "November"),
    ("December", "Dezember"),
)
_WEEKDAYS = (
    ("Monday", "Montag"),
    ("Tuesday", "Dienstag"),
    ("Wednesday", "Mittwoch"),
    ("Thursday", "Donnerstag"),
    ("Friday", "Freitag"),
    ("Saturday", "Samstag"),
    ("Sunday", "Sonntag"),
)
_SIGNS = ("$", "€", "£")
_CURRENCIES = (
    ("dollars", "Dollar"),
    ("euros", "Euro"),
    ("pounds", "Pfund"),
    ("francs", "Franken"),
    ("cents", "Cent"),
    ("yen", "Yen"),
    ("crowns", "Kronen"),
)
_SMALL_EN = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_SMALL_DE = (
    *("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"),
    *("dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"),
)
_TENS_EN = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TENS_DE = ("", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")


def number(rng: random.Random) -> Localised:
    """A whole number of up to nine digits; a thousand and more are grouped."""
    return _grouped(rng.randint(2, 10 ** rng.choice((1, 2, 3, 3, 4, 5, 5, 6, 7, 9))))


def decimal(rng: random.Random) -> Localised:
    """A number with one to five decimals."""
    whole = _grouped(rng.randint(0, 10 ** rng.randint(1, 3)))
    places = rng.choice((1, 1, 1, 2, 2, 3, 5))
    decimals = f"{rng.randrange(10**places):0{places}}"
    return {"en": f"{whole['en']}.{decimals}", "de": f"{whole['de']},{decimals}"}


def percentage(rng: random.Random) -> Localised:
    """A percentage, with a decimal or without."""
    value = decimal(rng) if rng.random() < 0.5 else _grouped(rng.randint(1, 100))
    return {"en": f"{value['en']}%", "de": f"{value['de']} %"}


def price(rng: random.Random) -> Localised:
    """A price with a sign or a word for its currency, such as "$1,234.50" and "1.234,50 $"."""
    whole = rng.randint(2, 10 ** rng.choice((1, 2, 2, 3, 3, 4, 5)))
    if rng.random() < 0.35:
        english, german = rng.choice(_CURRENCIES)
        value = _words(whole) if whole < 100 and rng.random() < 0.5 else _grouped(whole)
        return {"en": f"{value['en']} {english}", "de": f"{value['de']} {german}"}
    sign, value = rng.choice(_SIGNS), _grouped(whole)
    cents = rng.choice(("", "", "00", "50", "95", "99", f"{rng.randrange(100):02}"))
    return {
        "en": f"{sign}{value['en']}{'.' if cents else ''}{cents}",
        "de": f"{value['de']}{',' if cents else ''}{cents} {sign}",
    }


def clock(rng: random.Random) -> Localised:
    """A time of day in digits, such as "7:30 pm" or "19:30", and "19:30 Uhr"."""
    hour, minute = rng.randrange(24), rng.choice((0, 0, 0, 15, 30, 45, rng.randrange(60)))
    german = f"{hour}:{minute:02} Uhr" if minute else f"{hour} Uhr"
    if rng.random() < 0.35:
        return {"en": f"{hour}:{minute:02}", "de": f"{hour}:{minute:02} Uhr"}
    english = f"{(hour - 1) % 12 + 1}{f':{minute:02}' if minute else ''}"
    return {"en": f"{english}{rng.choice((' ', ' ', ''))}{'am' if hour < 12 else 'pm'}", "de": german}


def spoken(rng: random.Random) -> Localised:
    """A time of day in words, such as "half past seven" and "halb acht"."""
    hour = rng.randint(1, 12)
    following = hour % 12 + 1
    minutes = rng.choice((5, 10, 20))
    english, german = rng.choice(
        (
            ("half past {hour}", "halb {following}"),
            ("half past {hour}", "halb {following}"),
            ("a quarter past {hour}", "Viertel nach {hour}"),
            ("quarter past {hour}", "Viertel nach {hour}"),
            ("a quarter to {following}", "Viertel vor {following}"),
            ("quarter to {following}", "Viertel vor {following}"),
            ("{minutes} past {hour}", "{minutes} nach {hour}"),
            ("{minutes} to {following}", "{minutes} vor {following}"),
            ("{hour} o'clock", "{oclock} Uhr"),
            ("{hour}", "{oclock} Uhr"),
        )
    )
    values = {"hour": _words(hour), "following": _words(following), "minutes": _words(minutes)}
    oclock = "ein" if hour == 1 else _SMALL_DE[hour]
    return {
        "en": english.format(**{name: value["en"] for name, value in values.items()}),
        "de": german.format(oclock=oclock, **{name: value["de"] for name, value in values.items()}),
    }


def count(rng: random.Random) -> Localised:
    """A number from two to 99 in words."""
    return _words(rng.randint(2, rng.choice((12, 20, 99))))


def day(rng: random.Random) -> Localised:
    """A day of a month, with or without its year, such as "May 3rd" and "3. Mai"."""
    date, (english, german) = rng.randint(1, 31), rng.choice(_MONTHS)
    ending = "th" if 10 < date < 20 else {1: "st", 2: "nd", 3: "rd"}.get(date % 10, "th")
    year = f" {rng.randint(1900, 2035)}" if rng.random() < 0.3 else ""
    forms = (f"{english} {date}{',' if year else ''}{year}", f"{date} {english}{year}", f"{english} {date}{ending}")
    return {"en": rng.choice(forms[: 2 if year else 3]), "de": f"{date}. {german}{year}"}


def month(rng: random.Random) -> Localised:
    """A month's name."""
    return dict(zip(("en", "de"), rng.choice(_MONTHS), strict=True))


def weekday(rng: random.Random) -> Localised:
    """A weekday's name."""
    return dict(zip(("en", "de"), rng.choice(_WEEKDAYS), strict=True))


def _grouped(value: int) -> Localised:
    return {"en": f"{value:,}", "de": f"{value:,}".replace(",", ".")}


def _words(value: int) -> Localised:
    """A number below 100 in words."""
    if value < 20:
        return {"en": _SMALL_EN[value], "de": _SMALL_DE[value]}
    tens, ones = divmod(value, 10)
    german_ones = "" if not ones else f"{'ein' if ones == 1 else _SMALL_DE[ones]}und"
    return {
        "en": f"{_TENS_EN[tens]}{f'-{_SMALL_EN[ones]}' if ones else ''}",
        "de": f"{german_ones}{_TENS_DE[tens]}",
    }


LOCALISED: dict[str, Callable[[random.Random], Localised]] = {
    kind.__name__: kind for kind in (number, decimal, percentage, price, clock, spoken, count, day, month, weekday)
}
