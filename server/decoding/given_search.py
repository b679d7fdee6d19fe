"""The search that takes a given target, whatever the network would choose, so that its tokens get log-probabilities."""

from collections.abc import Sequence

from server.decoding.beam_search import BeamSearch


class GivenSearch(BeamSearch):
    """See `BeamSearch`; its options have a beam of 1 and a `given_target`."""

    def advance(
        self,
        top_ids: list[list[int]],
        top_log_probs: list[list[float]],
        wanted_log_probs: Sequence[float] = (),
    ) -> list[int]:
        """See `BeamSearch.advance`."""
        if not self.wanted:
            return super().advance(top_ids, top_log_probs)
        ((_, token),) = self.wanted
        lives = self.advance_greedily(token, wanted_log_probs[0])
        self.wanted = self._next() if lives else []
        return [0] if lives else []

    def _begin(self) -> None:
        self.wanted = self._next()

    def _next(self) -> list[tuple[int, int]]:
        target = self._options.given_target
        assert target is not None, "it is given a target"
        return [(0, target[self.num_tokens - self._num_forced])]
