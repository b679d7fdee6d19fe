"""Random text that a translation repeats as it stands: addresses, numbers, codes, names, emoji, placeholders."""

import random
from collections.abc import Callable

PLACEHOLDER_START = 0xE000  # private-use characters, reserved as whole tokens of every vocabulary (`model.vocabulary`)

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CAPITALS_AND_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_EMOJI = (
    *"😀😂😍🙏👍🎉🔥🚀🌍✅📦🐶🍕⚽🎵☕🌞💡😊😉😢😎🤔🤷👏💪✨🙂😅😭🥳🎁📅📍🏠🚗⭐❓",
    "❤️",
    "⚠️",
    "👍🏽",
    "✌️",
    "🇩🇪",
    ":-)",
    ";-)",
)
_RARE_EMOJI = (*range(0x1F300, 0x1F650), *range(0x1F680, 0x1F6C6), *range(0x1F90C, 0x1F9FF))
_DOMAINS = ("com", "org", "de", "net", "io", "co.uk", "at", "eu", "dev", "info")
_EXTENSIONS = ("pdf", "txt", "png", "zip", "json", "docx", "py", "csv", "mp4")
_PATHS = ("index", "blog", "item", "news", "en", "docs", "about", "img", "user", "login", "search", "v2", "api", "faq")
_NAMES = ("Tom", "Anna", "Maria", "Ben", "Sarah", "Lukas", "Emma", "Ahmed", "Julia", "Kim", "Omar", "Zoë", "Łukasz")
_SURNAMES = (
    "Smith",
    "Müller",
    "García",
    "Nguyen",
    "Kowalski",
    "Rossi",
    "O'Neill",
    "Žižek",
    "Đorđević",
    "Çelik",
    "Tanaka",
    "Weber",
)
_SYLLABLES = ("ba", "den", "ka", "lo", "mar", "ni", "os", "par", "ra", "sel", "to", "ur", "vel", "win", "xan", "zi")
_FIELDS = ("name", "user", "count", "email", "date", "file", "id", "title", "app", "url", "email_address", "userName")


def url(rng: random.Random) -> str:
    """A web address, such as "https://www.velmar.org/docs/item?id=42"."""
    scheme = rng.choice(("https://", "https://", "https://www.", "http://", "www."))
    path = "".join(f"/{rng.choice((*_PATHS, word(rng)))}" for _ in range(rng.randint(0, 3)))
    query = rng.choice(
        ("", "", "", "/", f"?id={rng.randint(1, 99999)}", f"?q={word(rng)}&page={rng.randint(1, 99)}", ".html")
    )
    return f"{scheme}{_host(rng)}{path}{query if path else ''}"


def email(rng: random.Random) -> str:
    """An e-mail address."""
    name = rng.choice(
        (word(rng), rng.choice(_NAMES[:8]).lower(), "info", "support", f"{word(rng)}{rng.randint(1, 99)}")
    )
    return f"{rng.choice((name, f'{name}.{word(rng)}', f'{name}_{word(rng)}'))}@{_host(rng)}"


def number(rng: random.Random) -> str:
    """A whole number of up to nine digits, grouped now and then, by commas, stops or no-break spaces."""
    value = rng.randint(0, 10 ** rng.randint(1, 9))
    return f"{value:,}".replace(",", rng.choice(",.\u00a0")) if rng.random() < 0.15 else str(value)


def amount(rng: random.Random) -> str:
    """A decimal number, a percentage, or a measure."""
    value = rng.choice((f"{rng.randint(0, 999)}.{rng.randint(0, 99)}", f"{rng.randint(0, 99)},{rng.randint(0, 9)}"))
    return value + rng.choice(("", "%", " %", " km", " kg", " MB", " °C", " m²", "x"))


def price(rng: random.Random) -> str:
    """A price in the writing of either language, such as "$1,234.50" or "12,99 €"."""
    whole, cents = rng.randint(0, 10 ** rng.randint(1, 5)), rng.choice((0, 50, 95, 99, rng.randint(0, 99)))
    english, german = f"{whole:,}.{cents:02}", f"{whole},{cents:02}"
    return rng.choice(
        (f"${english}", f"€{english}", f"£{english}", f"{german} €", f"${whole}", f"{whole} €", f"€{whole}")
    )


def time(rng: random.Random) -> str:
    """A time of day on the 24-hour clock."""
    return f"{rng.randint(0, 23):{rng.choice(('', '02'))}}:{rng.randint(0, 59):02}"


def date(rng: random.Random) -> str:
    """A date in digits."""
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1950, 2035)
    return rng.choice(
        (f"{day:02}.{month:02}.{year}", f"{year}-{month:02}-{day:02}", f"{month}/{day}/{year}", f"{day}.{month}.")
    )


def code(rng: random.Random) -> str:
    """A code, a version, a file, a path, or a hash."""
    letters = "".join(rng.choice(_CAPITALS_AND_DIGITS) for _ in range(rng.randint(3, 10)))
    digits = str(rng.randint(1, 10 ** rng.randint(2, 8)))
    return rng.choice(
        (
            letters,
            f"{letters[:3]}-{digits}",
            f"#{digits}",
            f"{letters}-{digits}-{letters[:2]}",
            f"v{rng.randint(0, 20)}.{rng.randint(0, 20)}.{rng.randint(0, 9)}",
            f"{word(rng)}_{word(rng)}.{rng.choice(_EXTENSIONS)}",
            f"/{rng.choice(_PATHS)}/{word(rng)}/{rng.choice(_PATHS)}",
            f"{rng.getrandbits(32):08x}",
        )
    )


def phone(rng: random.Random) -> str:
    """A telephone number."""
    area, subscriber = rng.randint(30, 999), rng.randint(1000, 9999999)
    return rng.choice(
        (f"+{rng.randint(1, 99)} {area} {subscriber}", f"0{area}/{subscriber}", f"{area}-555-{subscriber}")
    )


def handle(rng: random.Random) -> str:
    """A user's handle or a hashtag."""
    return f"{rng.choice('@#')}{rng.choice((word(rng), word(rng).title(), f'{word(rng)}{rng.randint(1, 999)}'))}"


def emoji(rng: random.Random) -> str:
    """One to three emoji, mostly such as are in every message, else any."""
    count = rng.choice((1, 1, 1, 2, 3))
    return "".join(chr(rng.choice(_RARE_EMOJI)) if rng.random() < 0.3 else rng.choice(_EMOJI) for _ in range(count))


def name(rng: random.Random) -> str:
    """A person's or a made-up name, sometimes in two words."""
    first = rng.choice((rng.choice(_NAMES), word(rng).title()))
    return rng.choice((first, first, f"{first} {rng.choice((*_SURNAMES, word(rng).title()))}"))


def field(rng: random.Random) -> str:
    """A placeholder as programs write it, such as "{name}", "%s" or "%1$d"."""
    if rng.random() < 0.4:
        return rng.choice(("%s", "%s", "%d", "%1$s", "%2$d", "$1", "$2", "{}", "{0}", "{1}"))
    return rng.choice(("{*}", "{*}", "{*}", "{{*}}", "${*}", "%{*}", "%(*)s")).replace("*", rng.choice(_FIELDS))


def word(rng: random.Random) -> str:
    """A made-up word of two or three syllables, or of random letters."""
    if rng.random() < 0.2:
        return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(3, 8)))
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 3)))


def anything(rng: random.Random) -> str:
    """Text of any kind."""
    return rng.choice(tuple(KINDS.values()))(rng)


def _host(rng: random.Random) -> str:
    return f"{rng.choice((word(rng), f'{word(rng)}-{word(rng)}', 'example'))}.{rng.choice(_DOMAINS)}"


KINDS: dict[str, Callable[[random.Random], str]] = {
    kind.__name__: kind
    for kind in (url, email, number, amount, price, time, date, code, phone, handle, emoji, name, field)
}
