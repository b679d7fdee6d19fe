import random
import re

import pytest

from model.noise import mistype

TEXT = "It's a building, near that river in Karlsruhe."


def test_mistakes_are_few() -> None:
    for seed in range(300):
        mistyped = mistype(TEXT, random.Random(seed))
        words = [set(re.sub("[.,'\u2019]", "", text).lower().split()) for text in (TEXT, mistyped)]
        assert len(words[0] - words[1]) <= 1


def test_there_are_mistakes_of_every_kind() -> None:
    seen = {mistype(TEXT, random.Random(seed)) for seed in range(500)}

    assert any(text.startswith("it") for text in seen)
    assert any(not text.endswith(".") for text in seen)
    assert any("Its" in text for text in seen)
    assert any("," not in text for text in seen)
    for misspelt in ("rievr", "rivr", "rivver", "rivwr"):
        assert any(misspelt in text for text in seen), misspelt


@pytest.mark.parametrize("text", ["", "OK", "https://example.org/index", "A1B2 {name} %s", "NASA XML2000"])
def test_short_words_codes_and_addresses_are_spelt_right(text: str) -> None:
    assert {mistype(text, random.Random(seed)).casefold() for seed in range(100)} == {text.casefold()}


def test_the_same_seed_makes_the_same_mistakes() -> None:
    first, second = ([mistype(TEXT, rng) for _ in range(50)] for rng in map(random.Random, (7, 7)))

    assert first == second
