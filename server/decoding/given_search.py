"""The search that takes given targets, whatever the network would choose, so that their tokens get log-probabilities.

Targets that begin alike are one beam until they differ.
"""

from collections.abc import Sequence
from typing import Any

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Hypothesis


class GivenSearch(BeamSearch):
    """See `BeamSearch`; its options have `given_targets`."""

    def __init__(self, options: DecodingOptions, **others: Any) -> None:
        self._open = [[*options.given_targets]]  # of each beam, the targets that begin with it
        super().__init__(options, **others)
        self.top_k = 1  # it looks at none of them

    def advance(
        self,
        top_ids: list[list[int]],
        top_log_probs: list[list[float]],
        wanted_log_probs: Sequence[float] = (),
    ) -> list[int]:
        """See `BeamSearch.advance`."""
        if not self.wanted:
            return super().advance(top_ids, top_log_probs)
        size = self.num_tokens - self._num_forced
        self.num_tokens += 1
        longer: list[tuple[int, int, float, list[float]]] = []
        for (beam, token), log_prob in zip(self.wanted, wanted_log_probs, strict=True):
            total, of_tokens = self._log_probs[beam] + log_prob, self._with(beam, log_prob)
            if token == self._eos_id:
                self._finish(self._prefixes[beam], total, FinishReason.STOP, of_tokens)
            else:
                longer.append((beam, token, total, of_tokens))
        self._stepped = self._prefixes
        self._prefixes = [[*self._stepped[beam], token] for beam, token, *_ in longer]
        self.last_ids = [token for _, token, *_ in longer]
        self._log_probs = [total for _, _, total, _ in longer]
        self._of_tokens = [of_tokens for *_, of_tokens in longer] if self._of_tokens else []
        self._open = [[each for each in self._open[beam] if each[size] == token] for beam, token, *_ in longer]
        parents = self._go_on([beam for beam, *_ in longer])
        self.wanted = self._next() if parents else []
        return parents

    def best(self) -> list[Hypothesis]:
        """See `BeamSearch.best`. Targets are compared by all of their tokens, so that none wins by having more."""

        def log_prob(hypothesis: Hypothesis) -> float:
            length = self._num_forced + len(hypothesis.ids) + (hypothesis.finish_reason is FinishReason.STOP)
            return float(hypothesis.score * length**self._options.length_penalty)

        return sorted(self.finished, key=log_prob, reverse=True)[: self._options.num_hypotheses]

    def _begin(self) -> None:
        self.wanted = self._next()

    def _next(self) -> list[tuple[int, int]]:
        """Returns each beam with each token that goes on with it in a target."""
        size = self.num_tokens - self._num_forced
        following = [dict.fromkeys(each[size] for each in targets) for targets in self._open]
        return [(beam, token) for beam, tokens in enumerate(following) for token in tokens]
