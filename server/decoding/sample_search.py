"""The search that draws tokens by their probabilities, instead of taking the best."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import FinishReason
from server.decoding.steering import Step, best_of

_BLOCK = 128  # about the root of a vocabulary's size; half or twice, and sums take a tenth longer


class SampleSearch(BeamSearch):
    """See `BeamSearch`; its options have `sampling`, and as many beams as hypotheses, each drawn without the others.

    What is drawn depends on the seed, the source, the hypothesis and the step alone: not on what runs beside it.
    """

    def __init__(self, options: DecodingOptions, *, source_ids: Sequence[int], **others: Any) -> None:
        assert options.sampling is not None, "it samples"
        self._sampling = options.sampling
        self._random = [_random(options.sampling.seed, source_ids, number) for number in range(options.beam_size)]
        super().__init__(options, source_ids=source_ids, **others)
        self.top_k = options.beam_size  # of the first step, from which all go on

    def advance(
        self,
        top_ids: list[list[int]],
        top_log_probs: list[list[float]],
        wanted_log_probs: Sequence[float] = (),  # noqa: ARG002  # it wants none
    ) -> list[int]:
        """See `BeamSearch.advance`. `draw` has put the drawn tokens in the place of the best ones."""
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

    def draw(self, rows: Sequence[int], step: Step) -> None:
        """Puts drawn tokens in the place of the best of these rows; from the first row, all hypotheses draw."""
        logits, top_ids, top_log_probs = step
        numbers = [random.random() for random in self._random]
        for row, own in zip(rows, [numbers] if len(rows) == 1 else [[each] for each in numbers], strict=True):
            best, log_prob, of_row = top_ids.item(row, 0), top_log_probs.item(row, 0), logits[row]
            for place, number in enumerate(own):
                token = draw(of_row, best, math.exp(log_prob), self._sampling, number)
                if place > 0 or token != best:
                    top_ids[row, place] = token
                    top_log_probs[row, place] = log_prob + of_row.item(token) - of_row.item(best)

    def _keep(self, beams: Sequence[int], parents: Sequence[int]) -> list[int]:
        self._random = [self._random[beam] for beam in beams]
        return super()._keep(beams, parents)


def draw(logits: NDArray[np.float32], best: int, probability: float, sampling: Sampling, number: float) -> int:
    """Returns a token: of the `top_k` best, with the temperature, of the `top_p` most probable.

    The numbers up to the best token's probability draw this token, and greater ones the others in the order of their
    ids. All that `sampling` can do, but for a temperature above 1, makes the best token more probable. So if the number
    is less than its probability before, the other tokens need no look.

    Args:
        logits: [V].
        best: the best token.
        probability: of it, before `sampling`.
        sampling: which says how.
        number: 0 or more, less than 1: which of the tokens.
    """
    if number < probability and sampling.temperature <= 1:
        return best
    tokens, scaled = None, logits
    if 0 < sampling.top_k < len(logits):
        tokens = np.sort(best_of(logits, sampling.top_k))
        scaled = logits[tokens]
    weights = scaled - logits[best]
    if sampling.temperature != 1:
        weights /= np.float32(sampling.temperature)
    np.exp(weights, weights)
    if sampling.top_p < 1:
        places = _nucleus(weights, sampling.top_p)
        tokens, weights = places if tokens is None else tokens[places], weights[places]
    of_best = best if tokens is None else int((tokens == best).argmax())
    place = _place(weights, of_best, number)
    return place if tokens is None else int(tokens[place])


def _nucleus(weights: NDArray[np.float32], top_p: float) -> NDArray[np.int64]:
    """Returns the places of the greatest weights that have this part of the sum together.

    It sorts those alone that may be among them: all that are less than these have less than the rest together.
    """
    total = float(weights.sum())
    places = (weights >= min(1.0, (1 - top_p) * total / len(weights))).nonzero()[0]
    own = weights[places]
    descending = -np.sort(-own)
    before = np.cumsum(descending, dtype=np.float64) - descending
    nucleus: NDArray[np.int64] = places[own >= descending[np.flatnonzero(before < top_p * total)[-1]]]
    return nucleus


def _place(weights: NDArray[np.float32], best: int, number: float) -> int:
    """Returns the first place up to which the weights, that of the best first, have more than this part of their sum.

    It adds up blocks first, because sums of all places would take five times as long.
    """
    of_best, weights[best] = weights[best], 0.0
    blocks = np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK)).cumsum(dtype=np.float64)
    sought = number * (of_best + blocks[-1]) - of_best
    if sought < 0:
        return best
    sought = min(sought, np.nextafter(blocks[-1], 0.0))
    block = int(blocks.searchsorted(sought, side="right"))
    within = weights[block * _BLOCK : (block + 1) * _BLOCK].cumsum(dtype=np.float64)
    place = int(within.searchsorted(sought - (blocks[block - 1] if block else 0.0), side="right"))
    return block * _BLOCK + min(place, int(within.searchsorted(within[-1])))


def _random(seed: int, source_ids: Sequence[int], number: int) -> "np.random.Generator":  # imported when named
    """Returns the numbers of one hypothesis, one a step."""
    digest = hashlib.blake2b(np.array([*source_ids, number], np.int64).tobytes(), digest_size=8).digest()
    return np.random.Generator(np.random.Philox(key=[seed, int.from_bytes(digest, "little")]))
