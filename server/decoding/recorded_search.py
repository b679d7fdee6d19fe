"""Searches that remember which beams they kept, for requests that ask how a translation was found.

The other searches know nothing of it, so that a request that does not ask pays nothing. A recorded search finds the
same hypotheses as the search that it extends.
"""

from dataclasses import replace
from typing import Any

from server.decoding.beam_search import BeamSearch
from server.decoding.given_search import GivenSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Hypothesis, SearchNode
from server.decoding.sample_search import SampleSearch
from server.decoding.term_search import TermSearch


class RecordedSearch(BeamSearch):
    """See `BeamSearch`; its options have `with_search`."""

    def __init__(self, options: DecodingOptions, **others: Any) -> None:
        self._nodes: list[SearchNode] = []
        self._places: dict[tuple[int | None, int], int] = {}  # of each node, by its parent and token
        self._live: list[int | None] = [None]  # the node of each live beam
        self._taken: list[tuple[Hypothesis, float]] = []  # with their log-probabilities
        super().__init__(options, **others)

    def tree(self) -> tuple[SearchNode, ...]:
        """Returns the beams that were kept at any step, each behind the one that it extends; the search is over."""
        covered = {(each.ids, each.finish_reason): each.score for each in self.finished}
        for hypothesis, log_prob in self._taken:
            *_, last = self._path(hypothesis, log_prob)
            before, reason = self._nodes[last].score, hypothesis.finish_reason
            score = covered.get((hypothesis.ids, reason), hypothesis.score)
            if before is None or score > before:  # two loops may be cut off at the same token
                self._nodes[last] = replace(self._nodes[last], score=score, finish_reason=reason)
        for place in self._path(self.best()[0], 0.0):
            self._nodes[place] = replace(self._nodes[place], is_chosen=True)
        return tuple(self._nodes)

    def advance_greedily(self, token: int, log_prob: float) -> bool:
        """See `BeamSearch.advance_greedily`."""
        return bool(self._extend([[token]], [[log_prob]]))

    def _follow_prefix(self, log_prob: float = 0.0) -> list[int]:
        parents = super()._follow_prefix(log_prob)
        if self.num_tokens > self._num_forced:
            self._live = [self._place(self._live[0], self.last_ids[0], self._log_probs[0])]
        return parents

    def _go_on(self, parents: list[int]) -> list[int]:
        steps = zip(parents, self.last_ids, self._log_probs, strict=True)
        places = [self._place(self._live[parent], token, log_prob) for parent, token, log_prob in steps]
        before = self._prefixes
        left = super()._go_on(parents)
        kept = before if self._prefixes is before else self._prefixes  # without loops
        self._live = [place for place, prefix in zip(places, before, strict=True) if kept is before or prefix in kept]
        return left

    def _hypothesis(self, ids: list[int], log_prob: float, reason: FinishReason, of_tokens: list[float]) -> Hypothesis:
        hypothesis = super()._hypothesis(ids, log_prob, reason, of_tokens)
        self._taken.append((hypothesis, log_prob))
        return hypothesis

    def _place(self, parent: int | None, token: int, log_prob: float) -> int:
        """Returns the number of a node, which is a new one if there is none yet."""
        place = self._places.setdefault((parent, token), len(self._nodes))
        if place == len(self._nodes):
            self._nodes.append(SearchNode(parent, token, log_prob))
        return place

    def _path(self, hypothesis: Hypothesis, log_prob: float) -> list[int]:
        """Returns the nodes of a hypothesis; only the last one may be new."""
        ends = [self._eos_id] if hypothesis.finish_reason is FinishReason.STOP else []
        path: list[int] = []
        for token in [*hypothesis.ids, *ends]:
            path.append(self._place(path[-1] if path else None, token, log_prob))
        return path


class RecordedGivenSearch(RecordedSearch, GivenSearch):
    """See `GivenSearch`."""


class RecordedTermSearch(RecordedSearch, TermSearch):
    """See `TermSearch`."""


class RecordedSampleSearch(RecordedSearch, SampleSearch):
    """See `SampleSearch`."""
