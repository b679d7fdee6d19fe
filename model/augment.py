"""Rewritings of training pairs that teach what real text needs and parallel text lacks: case, copying, placeholders.

Each is a function of one pair and a random generator, applied to the text before it is split into tokens.
"""

import random
from collections.abc import Callable

from model.config import AugmentationConfig

Pair = tuple[str, str]

PLACEHOLDER_START = 0xE000  # private-use characters, reserved as whole tokens of every vocabulary (`model.vocabulary`)

_EMOJI = "😀😂😍🙏👍🎉🔥❤🚀🌍✅⚠📦🐶🍕⚽🎵☕🌞💡"
_HOSTS = ("example.org", "test.io", "my-site.de", "news.net", "shop.co.uk", "docs.dev")
_WORDS = ("index", "blog", "a1", "item", "news", "en", "v2", "about", "img", "data", "user", "page")


def upper_case(pair: Pair, _rng: random.Random) -> Pair:
    """ALL CAPS on both sides."""
    return pair[0].upper(), pair[1].upper()


def title_case(pair: Pair, _rng: random.Random) -> Pair:
    """Title Case In The Source, as in headings; the target keeps its language's own spelling."""
    return " ".join(word[:1].upper() + word[1:] for word in pair[0].split(" ")), pair[1]


def lower_case(pair: Pair, _rng: random.Random) -> Pair:
    """The source in small letters and without its full stop, as people type it; the target stays correct."""
    return pair[0].lower().rstrip(" ."), pair[1]


def copy(pair: Pair, rng: random.Random) -> Pair:
    """The same URL, address, number, code or emoji before or behind both sides."""
    return _attach(pair, _copied_token(rng), rng)


def placeholder(pair: Pair, rng: random.Random, num_placeholders: int) -> Pair:
    """A placeholder symbol for a word that both sides share (a name, a number), or else beside both sides."""
    symbol = chr(PLACEHOLDER_START + rng.randrange(num_placeholders))
    source, target = pair[0].split(" "), pair[1].split(" ")
    shared = [w for w in source if len(w) > 1 and source.count(w) == 1 and target.count(w) == 1]
    if not shared:
        return _attach(pair, symbol, rng)
    word = rng.choice(shared)
    return " ".join(symbol if w == word else w for w in source), " ".join(symbol if w == word else w for w in target)


class Augmentation:
    """Applies at most one rewriting to a pair, with the configured probabilities."""

    def __init__(self, config: AugmentationConfig, num_placeholders: int) -> None:
        self._choices: list[tuple[float, Callable[[Pair, random.Random], Pair]]] = [
            (config.upper_case, upper_case),
            (config.title_case, title_case),
            (config.lower_case, lower_case),
            (config.copy, copy),
            (config.placeholder, lambda pair, rng: placeholder(pair, rng, num_placeholders)),
        ]

    def __call__(self, pair: Pair, rng: random.Random) -> Pair:
        """Returns the pair, rewritten or as it is."""
        draw = rng.random()
        for probability, rewrite in self._choices:
            if draw < probability:
                return rewrite(pair, rng)
            draw -= probability
        return pair


def _attach(pair: Pair, token: str, rng: random.Random) -> Pair:
    if rng.random() < 0.3:
        return f"{token} {pair[0]}", f"{token} {pair[1]}"
    return f"{pair[0]} {token}", f"{pair[1]} {token}"


def _copied_token(rng: random.Random) -> str:
    kind = rng.randrange(6)
    if kind == 0:
        path = "/".join(rng.choice(_WORDS) for _ in range(rng.randint(0, 3)))
        return f"https://{rng.choice(('', 'www.'))}{rng.choice(_HOSTS)}/{path}"
    if kind == 1:
        return f"{rng.choice(_WORDS)}.{rng.choice(_WORDS)}@{rng.choice(_HOSTS)}"
    if kind == 2:
        return str(rng.randint(0, 10 ** rng.randint(1, 9)))
    if kind == 3:
        return "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789-") for _ in range(rng.randint(3, 10)))
    if kind == 4:
        return f"{rng.randint(1, 31):02}.{rng.randint(1, 12):02}.{rng.randint(1950, 2030)}"
    return "".join(rng.choice(_EMOJI) for _ in range(rng.randint(1, 3)))
