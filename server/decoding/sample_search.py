"""The search that draws tokens by their probabilities, instead of taking the best."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import FinishReason
from server.decoding.steering import best_of

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

    def advance_steered(
        self,
        log_probs: NDArray[np.float32],
        top_ids: NDArray[np.int64],  # noqa: ARG002  # it draws others
        top_log_probs: NDArray[np.float32],  # noqa: ARG002
    ) -> list[int]:
        """See `BeamSearch.advance_steered`."""
        parents = list(range(len(self._prefixes))) if len(self._prefixes) > 1 else [0] * len(self._random)
        drawn = [
            draw(log_probs[parent], self._sampling, random.random())
            for parent, random in zip(parents, self._random, strict=True)
        ]
        self.num_tokens += 1
        self._stepped, totals = self._prefixes, self._log_probs
        self._prefixes = [[*self._stepped[parent], token] for parent, token in zip(parents, drawn, strict=True)]
        own = [float(log_probs[parent, token]) for parent, token in zip(parents, drawn, strict=True)]
        self._log_probs = [totals[parent] + each for parent, each in zip(parents, own, strict=True)]
        self._of_tokens = [self._with(*each) for each in zip(parents, own, strict=True)] if self._of_tokens else []
        self.last_ids = drawn
        live = [beam for beam, token in enumerate(drawn) if token != self._eos_id]
        for beam in set(range(len(drawn))).difference(live):
            self._finish(self._prefixes[beam][:-1], self._log_probs[beam], FinishReason.STOP, self._with(beam))
        parents = self._keep(live, parents)
        return self._go_on(parents)

    def _keep(self, beams: Sequence[int], parents: Sequence[int]) -> list[int]:
        self._random = [self._random[beam] for beam in beams]
        return super()._keep(beams, parents)


def draw(log_probs: NDArray[np.float32], sampling: Sampling, number: float) -> int:
    """Returns a token: of the `top_k` best, with the temperature, of the `top_p` most probable.

    Args:
        log_probs: [V].
        sampling: which says how.
        number: 0 or more, less than 1: which of the tokens.
    """
    tokens, scaled = None, log_probs
    if 0 < sampling.top_k < len(log_probs):
        tokens = np.sort(best_of(log_probs[np.newaxis], sampling.top_k)[0][0])
        scaled = log_probs[tokens]
    weights = np.exp((scaled - scaled.max()) / np.float32(sampling.temperature))
    if sampling.top_p < 1:
        descending = -np.sort(-weights)
        before = np.cumsum(descending, dtype=np.float64) - descending
        weights[weights < descending[np.flatnonzero(before < sampling.top_p * weights.sum())[-1]]] = 0.0
    place = _place(weights, number)
    return place if tokens is None else int(tokens[place])


def _place(weights: NDArray[np.float32], number: float) -> int:
    """Returns the first place up to which the weights have more than this part of their sum.

    It adds up blocks first, because sums of all places would take five times as long.
    """
    blocks = np.cumsum(np.add.reduceat(weights, range(0, len(weights), _BLOCK), dtype=np.float64))
    sought = min(number * blocks[-1], np.nextafter(blocks[-1], 0.0))
    block = int(np.searchsorted(blocks, sought, side="right"))
    within = np.cumsum(weights[block * _BLOCK : (block + 1) * _BLOCK], dtype=np.float64)
    place = int(np.searchsorted(within, sought - (blocks[block - 1] if block else 0.0), side="right"))
    return block * _BLOCK + min(place, int(np.searchsorted(within, within[-1])))


def _random(seed: int, source_ids: Sequence[int], number: int) -> "np.random.Generator":  # imported when named
    """Returns the numbers of one hypothesis, one a step."""
    digest = hashlib.blake2b(np.array([*source_ids, number], np.int64).tobytes(), digest_size=8).digest()
    return np.random.Generator(np.random.Philox(key=[seed, int.from_bytes(digest, "little")]))
