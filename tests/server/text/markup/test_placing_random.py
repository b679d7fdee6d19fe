"""Seeded random marks in random translations: no mark is lost, all are nested as before, and no text changes."""

import html
import random

import numpy as np
import pytest

from server.text.alignment import WordWeights
from server.text.markup.document import FIRST_STAND_IN
from server.text.markup.placing import place_marks
from server.text.markup.shares import Words
from tests.server.text.markup.random_marks import faults, random_marks

_PIECES = ("a", "bc", "den", "x-y", "3", "it's", "&", "<", ",", ".", "!", "„", "“", "(", "🙂", "  ", "")


def random_text(rng: random.Random, stand_ins: list[str]) -> str:
    pieces = [rng.choice(_PIECES) for _ in range(rng.randrange(12))] + stand_ins
    rng.shuffle(pieces)
    return rng.choice(["", " ", " "]).join(pieces)


def random_words(rng: random.Random, source: str, target: str) -> WordWeights | None:
    """Random attention of most words, none at times."""
    if rng.random() < 0.2:
        return None
    known = []
    for words in (Words(source), Words(target)):
        spans = list(zip(words.begins, words.ends, strict=True))
        known.append([span for span in spans if rng.random() < 0.9])
    weights = np.random.default_rng(rng.randrange(1 << 30)).dirichlet([0.2] * (len(known[0]) + 1), len(known[1]))
    return WordWeights(known[0], known[1], weights[:, :-1].astype(np.float32))


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_doubled_or_torn_apart(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        stand_ins = [chr(FIRST_STAND_IN + index) for index in range(rng.randrange(3))]
        source, target = random_text(rng, stand_ins), random_text(rng, stand_ins)
        marks = random_marks(rng, len(source))

        found = place_marks(marks, source, target, random_words(rng, source, target), html.escape)

        assert faults(marks, target, found) == [], (source, marks, found)
        kept = place_marks(marks, source, source, None, html.escape)
        assert faults(marks, source, kept) == [], (source, marks, kept)


@pytest.mark.parametrize("seed", range(10))
def test_marks_stand_round_their_stand_ins(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        stand_in = chr(FIRST_STAND_IN)
        source, target = random_text(rng, [stand_in]), random_text(rng, [stand_in])
        marks = random_marks(rng, len(source))

        found = place_marks(marks, source, target, random_words(rng, source, target), html.escape)

        before, behind = found.split(stand_in)
        for mark in marks:
            if mark.begin <= source.index(stand_in) < mark.end:
                assert mark.opening in before, (source, marks, found)
                assert mark.closing in behind, (source, marks, found)
