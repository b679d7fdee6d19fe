"""The search that draws tokens by their probabilities, instead of taking the best."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import FinishReason
from server.decoding.steering import log_softmax


class SampleSearch(BeamSearch):
    """See `BeamSearch`; its options have `sampling`, and as many beams as hypotheses, each drawn without the others.

    What is drawn depends on the seed, the source, the hypothesis and the step alone: not on what runs beside it.
    """

    def __init__(self, options: DecodingOptions, *, source_ids: Sequence[int], **others: Any) -> None:
        assert options.sampling is not None, "it samples"
        self._sampling = options.sampling
        self._random = [_random(options.sampling.seed, source_ids, number) for number in range(options.beam_size)]
        super().__init__(options, source_ids=source_ids, **others)

    def advance_steered(self, logits: NDArray[np.float32]) -> list[int]:
        """See `BeamSearch.advance_steered`."""
        self._steering.steer(logits, self._prefixes)
        parents = list(range(len(self._prefixes))) if len(self._prefixes) > 1 else [0] * len(self._random)
        drawn = [
            draw(logits[parent], self._sampling, random.random())
            for parent, random in zip(parents, self._random, strict=True)
        ]
        log_probs = log_softmax(logits)
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


def draw(logits: NDArray[np.float32], sampling: Sampling, number: float) -> int:
    """Returns a token: of the `top_k` best, with the temperature, of the `top_p` most probable.

    Args:
        logits: [V].
        sampling: which says how.
        number: 0 or more, less than 1: which of the tokens.
    """
    tokens = np.arange(len(logits))
    if 0 < sampling.top_k < len(logits):
        tokens = np.sort(np.argpartition(logits, -sampling.top_k)[-sampling.top_k :])
    scaled = logits[tokens].astype(np.float64) / sampling.temperature
    weights = np.exp(scaled - scaled.max())
    if sampling.top_p < 1:
        descending = -np.sort(-weights)
        before = np.cumsum(descending) - descending
        least = descending[np.flatnonzero(before < sampling.top_p * weights.sum())[-1]]
        tokens, weights = tokens[weights >= least], weights[weights >= least]
    sums = np.cumsum(weights)
    return int(tokens[min(np.searchsorted(sums, number * sums[-1], side="right"), len(tokens) - 1)])


def _random(seed: int, source_ids: Sequence[int], number: int) -> np.random.Generator:
    """Returns the numbers of one hypothesis, one a step."""
    digest = hashlib.blake2b(np.array([*source_ids, number], np.int64).tobytes(), digest_size=8).digest()
    return np.random.Generator(np.random.Philox(key=[seed, int.from_bytes(digest, "little")]))
