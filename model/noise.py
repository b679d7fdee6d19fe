"""Typing errors, missing capitals and full stops, put into training sources so that models bear with them."""

import random

_NEIGHBOURS = {
    ch: row[max(0, i - 1) : i] + row[i + 1 : i + 2]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for i, ch in enumerate(row)
}


def mistype(text: str, rng: random.Random) -> str:
    """Returns the text with one kind of carelessness or a few: typing errors, no capital, no stop, no apostrophes."""
    if rng.random() < 0.6:
        text = _misspell(text, rng)
    if rng.random() < 0.3:
        text = text[:1].lower() + text[1:]
    if rng.random() < 0.3:
        text = text.removesuffix(".")
    if rng.random() < 0.2:
        text = text.replace("'", rng.choice(("", "\u2019")))
    if rng.random() < 0.1:
        text = text.replace(",", "")
    return text


def _misspell(text: str, rng: random.Random) -> str:
    """One typing error, and one more for every 60 characters, each in a word of at least four small letters."""
    words = text.split(" ")
    candidates = [i for i, word in enumerate(words) if len(word) > 3 and word.isalpha() and word.islower()]
    for i in rng.sample(candidates, min(len(candidates), 1 + len(text) // 60)):
        words[i] = _misspell_word(words[i], rng)
    return " ".join(words)


def _misspell_word(word: str, rng: random.Random) -> str:
    i = rng.randrange(1, len(word) - 1)
    before, ch, after = word[:i], word[i], word[i + 1 :]
    kind = rng.randrange(4)
    if kind == 0:
        return f"{before}{after[0]}{ch}{after[1:]}"
    if kind == 1:
        return before + after
    if kind == 2:
        return before + ch + ch + after
    return before + rng.choice(_NEIGHBOURS.get(ch, ch)) + after
