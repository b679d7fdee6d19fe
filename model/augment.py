"""Rewritings of training pairs that teach what real text needs and parallel text lacks: case, copying, careless typing.

Each is a function of one pair and a random generator, applied to the text before it is split into tokens.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from types import MappingProxyType

from model.localised import LOCALISED
from model.noise import mistype
from model.recipe import AugmentationConfig
from model.verbatim import KINDS, PLACEHOLDER_START, anything, field, name

Pair = tuple[str, str]

_SLOT = re.compile(r"⟦(?P<name>(?P<kind>[a-z]+)\d?)(:(?P<language>[a-z]+))?⟧")
_MASKED = ("url", "email", "code", "phone", "handle", "emoji", "field")  # kinds of slots
_ENDS = (".", "!", "?", "…", '"', "”", "“")  # of a sentence, in either language
_WORD = re.compile(r"[^\W_]+(?:[.,:/-][^\W_]+)*")
_WHOLE_WORD = re.compile(r"[^\W_]+(?:['\u2019.,:/-][^\W_]+)*")  # "o'clock" is one
_FALSE_FRIENDS = frozenset(
    [
        "also",
        "art",
        "boot",
        "chef",
        "die",
        "gift",
        "hat",
        "hell",
        "man",
        "mode",
        "not",
        "rat",
        "see",
        "so",
        "tag",
        "war",
        "was",
        "wider",
        "will",
    ]
)


def upper_case(pair: Pair, _rng: random.Random) -> Pair:
    """ALL CAPS on both sides."""
    return pair[0].upper(), pair[1].upper()


def title_case(pair: Pair, _rng: random.Random) -> Pair:
    """Title Case In The Source, as in headings; the target keeps its language's own spelling."""
    return " ".join(word[:1].upper() + word[1:] for word in pair[0].split(" ")), pair[1]


def lower_case(pair: Pair, rng: random.Random) -> Pair:
    """The source in small letters and without its full stop, as people type it; the target stays correct.

    Half of them by way of ALL CAPS, which servers show the model in small letters: German "Straße" is "strasse" then.
    """
    source = pair[0].upper() if rng.random() < 0.5 else pair[0]
    return source.lower().rstrip(" ."), pair[1]


def noise(pair: Pair, rng: random.Random) -> Pair:
    """The source as a hurried writer leaves it; the target stays correct."""
    return mistype(pair[0], rng), pair[1]


def copy(pair: Pair, rng: random.Random) -> Pair:
    """The same URL, address, number, code, name or emoji before, behind or in brackets within both sides."""
    return _attach(pair, anything(rng), rng)


def replace(pair: Pair, rng: random.Random) -> Pair:
    """Another name, number, code or placeholder for one that both sides share, or else one beside both sides."""
    shared = _shared_words(pair)
    if not shared:
        return copy(pair, rng)
    word = rng.choice(shared)
    return _replace_word(pair, word, _other_number(word, rng) if _has_digit(word) else _other_name(rng))


def placeholder(pair: Pair, rng: random.Random, num_placeholders: int) -> Pair:
    """A placeholder symbol for a name or a number that both sides share, or else beside both sides."""
    symbol = chr(PLACEHOLDER_START + rng.randrange(num_placeholders))
    shared = _shared_words(pair)
    return _replace_word(pair, rng.choice(shared), symbol) if shared else _attach(pair, symbol, rng)


class Interchange:
    """Puts a word and its translation in the place of others of their class, so that rare words are seen in sentences.

    Source: "Data Augmentation for Low-Resource Neural Machine Translation" (arXiv:1705.00440), with a dictionary for
    its language model and word alignment.
    """

    def __init__(self, classes: Mapping[Pair, str]) -> None:
        self._translations: dict[str, dict[str, str]] = defaultdict(dict)  # by source word: translation, class
        self._members: dict[str, list[Pair]] = defaultdict(list)
        for pair, word_class in classes.items():
            self._translations[pair[0]][pair[1]] = word_class
            self._members[word_class].append(pair)

    def __call__(self, pair: Pair, rng: random.Random) -> Pair:
        """Returns the pair with one word of either side exchanged, or as it is where no such words stand once."""
        source, target = (Counter(_WHOLE_WORD.findall(side)) for side in pair)
        found = [
            (word, translation, word_class)
            for word, count in source.items()
            if count == 1
            for translation, word_class in self._translations.get(word, {}).items()
            if target[translation] == 1
        ]
        if not found:
            return pair
        word, translation, word_class = rng.choice(found)
        other = rng.choice(self._members[word_class])
        return _exchange(pair[0], word, other[0], _WHOLE_WORD), _exchange(pair[1], translation, other[1], _WHOLE_WORD)


class Augmentation:
    """Fills a pair's slots, such as ⟦url⟧, or applies at most one rewriting, with the configured probabilities."""

    def __init__(
        self, config: AugmentationConfig, num_placeholders: int, classes: Mapping[Pair, str] = MappingProxyType({})
    ) -> None:
        self._join = config.join
        self._num_placeholders = num_placeholders if config.placeholder else 0  # for slots
        self._choices: list[tuple[float, Callable[[Pair, random.Random], Pair]]] = [
            (config.upper_case, upper_case),
            (config.title_case, title_case),
            (config.lower_case, lower_case),
            (config.noise, noise),
            (config.copy, copy),
            (config.replace, replace),
            (config.placeholder, lambda pair, rng: placeholder(pair, rng, num_placeholders)),
            (config.interchange, Interchange(classes)),
        ]

    def __call__(self, pair: Pair, rng: random.Random) -> Pair:
        """Returns the pair, rewritten or as it is."""
        if "⟦" in pair[0]:
            return fill_slots(pair, rng, self._num_placeholders)
        draw = rng.random()
        for probability, rewrite in self._choices:
            if draw < probability:
                return rewrite(pair, rng)
            draw -= probability
        return pair

    def join(self, pairs: list[Pair], max_characters: int, rng: random.Random) -> list[Pair]:
        """Puts two or three neighbours into one pair, with the configured probability, if all are whole sentences."""
        if not self._join:
            return pairs
        joined: list[Pair] = []
        start = 0
        while start < len(pairs):
            group = pairs[start : start + (rng.choice((2, 2, 3)) if rng.random() < self._join else 1)]
            start += len(group)
            both = " ".join(source for source, _ in group), " ".join(target for _, target in group)
            is_whole = all(side.endswith(_ENDS) for pair in group for side in pair)
            joined += [both] if is_whole and max(map(len, both)) <= max_characters else group
        return joined


def fill_slots(pair: Pair, rng: random.Random, num_placeholders: int = 0) -> Pair:
    """Puts random text into the slots of either side.

    ⟦url⟧, ⟦time⟧, ⟦time2⟧, ... get the same text on both sides (`model.verbatim`). Half of those that a server would
    mask (`server.text.masking`) get a placeholder symbol, each its own, if there are so many. ⟦price:en⟧ and ⟦price:de⟧
    get the same price as each language writes it (`model.localised`). What is no such slot stays as it is.
    """
    slots = {(slot["name"], bool(slot["language"])): slot["kind"] for slot in _SLOT.finditer(pair[0])}
    texts = {
        name: KINDS[kind](rng) for (name, has_language), kind in slots.items() if not has_language and kind in KINDS
    }
    localised = {
        name: LOCALISED[kind](rng) for (name, has_language), kind in slots.items() if has_language and kind in LOCALISED
    }
    masked = [name for name in texts if slots[name, False] in _MASKED]
    if len(masked) <= num_placeholders:
        symbols = rng.sample(range(PLACEHOLDER_START, PLACEHOLDER_START + num_placeholders), len(masked))
        texts |= {slot: chr(symbol) for slot, symbol in zip(masked, symbols, strict=True) if rng.random() < 0.5}

    def text(slot: re.Match[str]) -> str:
        name, language = slot["name"], slot["language"]
        return localised.get(name, {}).get(language, slot[0]) if language else texts.get(name, slot[0])

    source, target = (_SLOT.sub(text, side) for side in pair)
    return source, target


def _attach(pair: Pair, text: str, rng: random.Random) -> Pair:
    forms = [
        "{text} {side}",
        "{text}: {side}",
        "{side} {text}",
        "{side} {text}",
        "{side} ({text})",
        "{text} \u2013 {side}",
    ]
    stop = pair[0][-1:]
    if stop and stop in ".!?" and pair[1].endswith(stop) and not pair[0].endswith(".."):
        pair = pair[0][:-1], pair[1][:-1]
        inner = ["{side} ({text}){stop}", "{side}: {text}" if stop == "." else "{side}{stop} ({text})"]
        forms = [form.replace("{side}", "{side}{stop}") for form in forms[:4]] + inner
    form = rng.choice(forms)
    return form.format(side=pair[0], text=text, stop=stop), form.format(side=pair[1], text=text, stop=stop)


def _shared_words(pair: Pair) -> list[str]:
    """Names and numbers (but "1", whose noun is a singular) that stand once on either side."""
    source, target = (Counter(_WORD.findall(side)) for side in pair)
    return [
        word
        for word, count in source.items()
        if (
            (_has_digit(word) and word != "1")
            or (word[0].isupper() and len(word) > 2 and word.lower() not in _FALSE_FRIENDS)
        )
        and count == target[word] == 1
    ]


def _replace_word(pair: Pair, word: str, text: str) -> Pair:
    return _exchange(pair[0], word, text), _exchange(pair[1], word, text)


def _exchange(side: str, word: str, text: str, words: re.Pattern[str] = _WORD) -> str:
    return words.sub(lambda match: text if match[0] == word else match[0], side)


def _has_digit(word: str) -> bool:
    return any(ch.isdecimal() for ch in word)


def _other_number(word: str, rng: random.Random) -> str:
    if rng.random() < 0.2:
        return field(rng)
    return "".join(rng.choice("23456789") if ch.isdecimal() else ch for ch in word)


def _other_name(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return name(rng)
    return field(rng) if kind < 0.7 else anything(rng)
