import random
import re

import pytest

from model.verbatim import KINDS, anything, word

PATTERNS = {
    "url": r"(https?://)?(www\.)?[a-z-]+(\.[a-z]+)+(/\S*)?",
    "email": r"[\w.]+@[a-z-]+(\.[a-z]+)+",
    "number": r"[\d,.\u00a0]+",
    "amount": r"\d+[.,]\d+[ %\w°²]*",
    "price": r"[$€£][\d,]+(\.\d\d)?|\d+(,\d\d)? €",
    "time": r"\d?\d:\d\d",
    "date": r"[\d./-]+",
    "code": r"[\w#+./ -]+",
    "phone": r"\+?\d[\d /-]+",
    "handle": r"[@#]\w+",
    "emoji": r"[^\w]+",
    "name": r"[^\Wa-z]\w+( [\w']+)?",
    "field": r"[${}%()\w]+",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_form(kind: str) -> None:
    rng = random.Random(0)

    for _ in range(300):
        assert re.fullmatch(PATTERNS[kind], KINDS[kind](rng))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_varied_and_the_same_for_the_same_seed(kind: str) -> None:
    first, second = ([KINDS[kind](rng) for _ in range(100)] for rng in map(random.Random, (1, 1)))

    assert first == second
    assert len(set(first)) > 12


def test_anything_is_of_every_kind() -> None:
    texts = [anything(random.Random(seed)) for seed in range(500)]

    assert all(any(re.fullmatch(pattern, text) for text in texts) for pattern in PATTERNS.values())


def test_made_up_words_are_letters() -> None:
    assert all(re.fullmatch("[a-z]{3,12}", word(random.Random(seed))) for seed in range(500))
