"""What is translated: real sentences, with lengths from a lognormal distribution, as real requests have them."""

import random
import re

from tests.acceptance.calls import read_sentences
from tests.acceptance.server_process import REPOSITORY

_DATA = REPOSITORY / "tests" / "data"
_FILES = ("multi30k_val_200.en.txt", "newstest2014_500.en.txt")
_MEDIAN_WORDS, _SIGMA = 14.0, 0.5
_LONGEST_WORDS = 60
# Nothing that the server would not show a network, or look for in a translation: a keyed network's have no numbers, and
# a quotation that is lost is translated again only where there is room for it, so that its answer depends on the load.
_PLAIN = re.compile(r"(?:[A-Za-z ,;:.?!()-]|\b'\b)+")


def draw_sentences(count: int, seed: int = 1) -> list[str]:
    """Returns different sentences; fewer where there are no more of a length.

    Args:
        count: at most, duplicates included.
        seed: of the draw.
    """
    by_length: dict[int, list[str]] = {}
    for name in _FILES:
        for line in read_sentences(_DATA / name, 1000):
            if not _PLAIN.fullmatch(line):
                continue
            by_length.setdefault(min(len(line.split()), _LONGEST_WORDS), []).append(line)
    chance = random.Random(seed)
    drawn: dict[str, None] = {}
    for _ in range(count):
        words = _MEDIAN_WORDS * chance.lognormvariate(0.0, _SIGMA)
        drawn[chance.choice(by_length[min(by_length, key=lambda length: abs(length - words))])] = None
    return list(drawn)
