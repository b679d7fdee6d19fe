"""The search that draws tokens by their probabilities, instead of taking the best."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import FinishReason
from server.decoding.steering import Step

_GROUP = 32  # tokens; half, and the likeliest ones are found as fast; twice, and it takes a third longer
_BLOCK = 128  # about the root of a vocabulary's size; half or twice, and its sums take a twentieth longer
# A best logit with a greater absolute value is subtracted from all before their exponentials are added up. With half of
# it, this happens to more rows, and a draw from such a row takes a sixth longer. With twice, sums become infinite.
_MOST_LOGIT = 60.0


class SampleSearch(BeamSearch):
    """See `BeamSearch`; its options have `sampling`, and as many beams as hypotheses, each drawn without the others.

    What is drawn depends on the seed, the source, the hypothesis and the step alone: not on what runs beside it.
    """

    def __init__(self, options: DecodingOptions, *, source_ids: Sequence[int], **others: Any) -> None:
        assert options.sampling is not None, "it samples"
        self._sampling = options.sampling
        self._source_ids = source_ids
        super().__init__(options, source_ids=source_ids, **others)
        self._is_changed = replace(options, sampling=None).is_steered  # whether other options change logits
        self.top_k = options.beam_size  # of the first step, from which all go on

    @cached_property
    def _random(self) -> list[Random]:
        """The source of numbers of each hypothesis. They are made when the sentence runs, as each takes 2.6 KB."""
        return [_numbers(self._sampling.seed, self._source_ids, number) for number in range(self._options.beam_size)]

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
        if self._is_changed:
            super().change(rows, step)
        if len(rows) == 1:
            self._draw_of(rows[0], range(len(self._random)), self._random, step)
        else:
            for row, random in zip(rows, self._random, strict=True):
                self._draw_of(row, (0,), (random,), step)

    def _draw_of(self, row: int, places: Sequence[int], numbers: Sequence[Random], step: Step) -> None:
        """Puts a token that is drawn from a row in each of these places of its best tokens."""
        best, own, log_prob = step.top_ids[row][0], step.logits[row], step.top_log_probs[row][0]
        for place, random in zip(places, numbers, strict=True):
            token = draw(own, best, math.exp(log_prob), self._sampling, random)
            if place > 0 or token != best:
                step.top_ids[row][place] = token
                step.top_log_probs[row][place] = log_prob + own.item(token) - own.item(best)

    def _keep(self, beams: Sequence[int], parents: Sequence[int]) -> list[int]:
        self._random = [self._random[beam] for beam in beams]
        return super()._keep(beams, parents)


def draw(logits: NDArray[np.float32], best: int, probability: float, sampling: Sampling, random: Random) -> int:
    """Returns a token: of the `top_k` best, with the temperature, of the `top_p` most probable.

    A number below the best token's probability draws the best token; a greater one draws one of the others, in the
    order of their ids. Whatever `sampling` does makes the best token more probable, except a temperature above 1. So a
    number below its `least_probability` draws it without a look at the other tokens. So does any number if this
    probability is `top_p` or more: then no less probable token is allowed.

    To know all tokens that `top_p` allows, they would have to be sorted. But one token is allowed if the more probable
    ones have less than `top_p` together, and that is one sum. So a token is drawn from all. If it is not allowed, one
    of the more probable ones is drawn, until one is allowed. Each time, about half of what is not allowed leaves.

    Args:
        logits: [V].
        best: the best token, of equals that of the lowest id.
        probability: of the best token in the step, 0 to 1.
        sampling: how tokens are drawn.
        random: the source of numbers; each draw takes one.
    """
    number = random.random()
    if sampling.temperature <= 1:
        least = least_probability(probability, sampling.temperature)
        if number < least or least >= sampling.top_p:
            return best
    tokens, best_place = None, best
    if 0 < sampling.top_k < len(logits):
        tokens = likely(logits, sampling.top_k)
        logits = logits[tokens]
        if len(tokens) > sampling.top_k:
            is_one = logits >= np.partition(logits, -sampling.top_k)[-sampling.top_k]
            tokens, logits = tokens[is_one], logits[is_one]
        best_place = int(tokens.searchsorted(best))
    weights = _weights(logits, best_place, sampling.temperature)
    place, total = _place(weights, best_place, number)
    while sampling.top_p < 1 and place != best_place:
        better = (weights > weights.item(place)).nonzero()[0]
        likelier = weights[better]
        if likelier.sum() < sampling.top_p * total:
            break
        tokens, weights = better if tokens is None else tokens[better], likelier
        best_place = int(better.searchsorted(best_place))
        place, _ = _place(weights, best_place, random.random())
    return place if tokens is None else int(tokens[place])


def least_probability(probability: float, temperature: float) -> float:
    """Returns what the best token's probability is at least, once a temperature of 1 or less has changed it.

    The temperature t divides logits, so what a token is to the best one, r, becomes r ** (1 / t). All r together are
    1 / p - 1, so none is greater, and the new ones are (1 / p - 1) ** (1 / t) together at most.

    Args:
        probability: p, of the best token without the temperature, over 0 to 1.
        temperature: over 0 to 1.
    """
    if probability <= 0.5:  # the bound would be lower than p
        return probability
    others = max(0.0, 1.0 / probability - 1.0)  # a rounded probability may be over 1
    return 1.0 / (1.0 + math.pow(others, 1.0 / temperature))


def likely(values: NDArray[np.float32], top_k: int) -> NDArray[np.int64]:
    """Returns tokens among which the best are, in the order of their ids.

    No token is among them that is worse than the k-th best of the groups' best. To sort all would take ten times as
    long.

    Args:
        values: of each token, [V].
        top_k: how many are the best, 1 to V.
    """
    num_groups = len(values) // _GROUP
    # A group is every n-th token, because numpy compares runs of rows five times as fast as within them.
    groups = values[: num_groups * _GROUP].reshape(_GROUP, num_groups).max(axis=0)
    least = np.partition(groups if top_k <= num_groups else values, -top_k)[-top_k]
    tokens: NDArray[np.int64] = (values >= least).nonzero()[0]
    return tokens


def _weights(logits: NDArray[np.float32], best: int, temperature: float) -> NDArray[np.float32]:
    """Returns the probabilities of tokens with the temperature, times a number that is the same for all.

    To subtract the best logit takes another look at all tokens, so that is done only if the sum needs it.
    """
    highest = logits.item(best) / temperature
    weights = logits if temperature == 1 else logits / temperature
    if abs(highest) > _MOST_LOGIT:
        weights = (logits - logits.item(best)) / temperature
    return np.exp(weights)


def _place(weights: NDArray[np.float32], best: int, number: float) -> tuple[int, float]:
    """Returns the place that a number draws: the first one at which the weights so far exceed that part of their sum.

    The best weight is added first, and the others in order. Blocks are added first, because sums of all places would
    take three times as long.

    Args:
        weights: [n], none negative.
        best: the place of a weight that no other exceeds.
        number: 0 or more, less than 1.

    Returns:
        The place, and the sum.
    """
    highest = weights.item(best)
    weights[best] = 0.0
    has_blocks = len(weights) > _BLOCK
    sums = (np.add.reduceat(weights, _begins(len(weights))) if has_blocks else weights).cumsum()
    total, place = highest + sums.item(-1), best
    sought = number * total - highest
    if sought >= 0:
        place = _first_above(sums, sought)
        if has_blocks:
            sought -= sums.item(place - 1) if place else 0.0
            begin = place * _BLOCK
            place = begin + _first_above(weights[begin : begin + _BLOCK].cumsum(), sought)
    weights[best] = highest
    return place, total


def _first_above(sums: NDArray[np.float32], sought: float) -> int:
    """Returns the place of the first sum above a number, or, if rounding has left none, of the first highest sum."""
    place = int(sums.searchsorted(sought, "right"))
    return place if place < len(sums) else int(sums.searchsorted(sums.item(-1)))


@lru_cache(maxsize=8)  # sizes of vocabularies; with `top_k` sizes seldom come again
def _begins(num_places: int) -> NDArray[np.int64]:
    """Returns the places where blocks begin."""
    return np.arange(0, num_places, _BLOCK)


def _numbers(seed: int, source_ids: Sequence[int], number: int) -> Random:
    """Returns the random numbers of one hypothesis."""
    return Random(repr((seed, number, *source_ids)))
