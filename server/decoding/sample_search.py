"""The search that draws tokens by their probabilities, instead of taking the best."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import FinishReason
from server.decoding.steering import Step, likely

_BLOCK = 128  # about the root of a vocabulary's size; half or twice, and sums take a tenth longer


class SampleSearch(BeamSearch):
    """See `BeamSearch`; its options have `sampling`, and as many beams as hypotheses, each drawn without the others.

    What is drawn depends on the seed, the source, the hypothesis and the step alone: not on what runs beside it.
    """

    def __init__(self, options: DecodingOptions, *, source_ids: Sequence[int], **others: Any) -> None:
        assert options.sampling is not None, "it samples"
        self._sampling = options.sampling
        self._random = [_numbers(options.sampling.seed, source_ids, number) for number in range(options.beam_size)]
        super().__init__(options, source_ids=source_ids, **others)
        self.top_k = options.beam_size  # of the first step, from which all go on

    def advance(
        self,
        top_ids: list[list[int]],
        top_log_probs: list[list[float]],
        wanted_log_probs: Sequence[float] = (),  # noqa: ARG002  # it wants none
    ) -> list[int]:
        """See `BeamSearch.advance`. `change` has put the drawn tokens in the place of the best ones."""
        if self.num_tokens < len(self._followed) or self._beam_size == 1:
            return super().advance(top_ids, top_log_probs)
        self.top_k, number = 1, len(self._random)
        is_first = len(self._prefixes) == 1
        parents, places = ([0] * number, range(number)) if is_first else (list(range(number)), [0] * number)
        drawn = [top_ids[parent][place] for parent, place in zip(parents, places, strict=True)]
        own = [top_log_probs[parent][place] for parent, place in zip(parents, places, strict=True)]
        self.num_tokens += 1
        self._stepped, totals = self._prefixes, self._log_probs
        self._prefixes = [[*self._stepped[parent], token] for parent, token in zip(parents, drawn, strict=True)]
        self._log_probs = [totals[parent] + each for parent, each in zip(parents, own, strict=True)]
        self._of_tokens = [self._with(*each) for each in zip(parents, own, strict=True)] if self._of_tokens else []
        self.last_ids = drawn
        live = [beam for beam, token in enumerate(drawn) if token != self._eos_id]
        for beam in set(range(len(drawn))).difference(live):
            self._finish(self._prefixes[beam][:-1], self._log_probs[beam], FinishReason.STOP, self._with(beam))
        return self._go_on(self._keep(live, parents))

    def change(self, rows: Sequence[int], step: Step) -> None:
        """See `BeamSearch.change`. Drawn tokens come in the place of the best; from the first row, all are drawn."""
        super().change(rows, step)
        is_first = len(rows) == 1
        for number, random in enumerate(self._random):
            row, place = (rows[0], number) if is_first else (rows[number], 0)
            best, own = step.top_ids.item(row, 0), step.logits[row]
            log_prob = step.top_log_probs.item(row, 0)
            token = draw(own, best, math.exp(log_prob), self._sampling, random)
            if place > 0 or token != best:
                step.top_ids[row, place] = token
                step.top_log_probs[row, place] = log_prob + own.item(token) - own.item(best)

    def _keep(self, beams: Sequence[int], parents: Sequence[int]) -> list[int]:
        self._random = [self._random[beam] for beam in beams]
        return super()._keep(beams, parents)


def draw(logits: NDArray[np.float32], best: int, probability: float, sampling: Sampling, random: Random) -> int:
    """Returns a token: of the `top_k` best, with the temperature, of the `top_p` most probable.

    A number below the best token's probability draws the best token; a greater one draws one of the others, in the
    order of their ids. Whatever `sampling` does makes the best token more probable, except a temperature above 1. So a
    number below its probability in the step draws it without a look at the other tokens.

    To know all tokens that `top_p` allows, they would have to be sorted. But one token is allowed if the more probable
    ones have less than `top_p` together, and that is one sum. So a token is drawn from all. If it is not allowed, it
    and all that are as probable or less are left out, and another is drawn, until one is allowed. Each time, about half
    of what is not allowed leaves.

    Args:
        logits: [V].
        best: the best token, of equals that of the lowest id.
        probability: of the best token in the step, 0 to 1.
        sampling: how tokens are drawn.
        random: the source of numbers; each draw takes one.
    """
    number = random.random()
    if number < probability and sampling.temperature <= 1:
        return best
    tokens, scaled, best_place = None, logits, best
    if 0 < sampling.top_k < len(logits):
        tokens = likely(logits, sampling.top_k)
        scaled = logits[tokens]
        if len(tokens) > sampling.top_k:
            is_one = scaled >= np.partition(scaled, -sampling.top_k)[-sampling.top_k]
            tokens, scaled = tokens[is_one], scaled[is_one]
        best_place = bisect_left(tokens, best)
    weights = scaled - logits.item(best)
    if sampling.temperature != 1:
        weights /= sampling.temperature
    np.exp(weights, weights)
    place, total = _place(weights, best_place, number)
    if sampling.top_p < 1 and place != best_place:
        while weights[weights > weights.item(place)].sum() >= sampling.top_p * total:
            weights[weights <= weights.item(place)] = 0.0
            place, _ = _place(weights, best_place, random.random())
    return place if tokens is None else int(tokens[place])


def _place(weights: NDArray[np.float32], best: int, number: float) -> tuple[int, float]:
    """Returns the place that a number draws: the first one at which the weights so far exceed that part of their sum.

    The best weight is added first, and the others in order. Blocks are added first, because sums of all places would
    take five times as long.

    Args:
        weights: [n], 0 to 1.
        best: the place of the first weight of 1.
        number: 0 or more, less than 1.

    Returns:
        The place, and the sum.
    """
    weights[best] = 0.0
    blocks = list(accumulate(np.add.reduceat(weights, _begins(len(weights))).tolist()))
    total, place = 1.0 + blocks[-1], best
    sought = number * total - 1.0
    if sought >= 0:
        block = min(bisect_right(blocks, sought), bisect_left(blocks, blocks[-1]))
        within = list(accumulate(weights[block * _BLOCK : (block + 1) * _BLOCK].tolist()))
        sought -= blocks[block - 1] if block else 0.0
        place = block * _BLOCK + min(bisect_right(within, sought), bisect_left(within, within[-1]))
    weights[best] = 1.0
    return place, total


@lru_cache(maxsize=8)  # sizes of vocabularies; with `top_k` sizes seldom come again
def _begins(num_places: int) -> NDArray[np.int64]:
    """Returns the places where blocks begin."""
    return np.arange(0, num_places, _BLOCK)


def _numbers(seed: int, source_ids: Sequence[int], number: int) -> Random:
    """Returns the random numbers of one hypothesis."""
    return Random(repr((seed, number, *source_ids)))
