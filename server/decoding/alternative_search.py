"""The search for hypotheses that begin with different tokens: what else could stand at a place of a translation.

Behind the prefix, if there is one, the likeliest tokens each begin a hypothesis, and a beam search of its own goes on
from each. The rules are those of CTranslate2's `return_alternatives`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import Hypothesis
from server.decoding.steering import Step

_LEAST_LEFT = 1e-6  # of the probability, that is not of eos: what is less is rounding of float32


class AlternativeSearch(BeamSearch):
    """See `BeamSearch`; its options have `return_alternatives`, and no sampling, terms, bias or coverage penalty.

    Its beams are those of the searches that go on from the alternatives, one after the other, the likeliest first.
    """

    def __init__(self, options: DecodingOptions, **others: Any) -> None:
        self._others = others
        self._alternatives: list[_Continued] = []
        self._live: list[_Continued] = []
        super().__init__(options, **others)
        self.top_k = max(self.top_k, options.num_hypotheses + 1)  # of which one may be eos

    def _begin(self) -> None:
        super()._begin()
        self.is_greedy = False
        self.wanted = [(0, self._eos_id)]

    def advance(
        self,
        top_ids: list[list[int]],
        top_log_probs: list[list[float]],
        wanted_log_probs: Sequence[float] = (),
    ) -> list[int]:
        """See `BeamSearch.advance`."""
        if self._live:
            return self._step(top_ids, top_log_probs)
        if not self.wanted:
            return self._follow_prefix()
        return self._expand(top_ids[0], top_log_probs[0], wanted_log_probs[0])

    def change(self, rows: Sequence[int], step: Step) -> None:
        """See `BeamSearch.change`."""
        beams = [beam for search in self._live for beam in search.beams] or self._prefixes
        for row, own in zip(rows, beams, strict=True):
            self._steering.change(step, row, own, self.top_k)

    def best(self) -> list[Hypothesis]:
        """Returns the best hypothesis of each alternative, the likeliest alternative first."""
        return [each.alternative() for each in self._alternatives]

    def _expand(self, ids: Sequence[int], log_probs: Sequence[float], of_eos: float) -> list[int]:
        """Begins a search behind each of the best tokens, of which eos is none."""
        rest = math.log(max(_LEAST_LEFT, 1.0 - math.exp(of_eos)))
        tokens = [(token, log_prob) for token, log_prob in zip(ids, log_probs, strict=True) if token != self._eos_id]
        least = self._options.min_alternative_expansion_prob
        for token, log_prob in tokens[: self._options.num_hypotheses]:
            if self._alternatives and math.exp(min(0.0, log_prob - rest)) < least:
                break
            given = (*self._prefixes[0], token)
            options = replace(self._options, num_hypotheses=1, return_alternatives=False, target_prefix=given)
            self._alternatives.append(_Continued(options, log_prob, min(0.0, log_prob - rest), **self._others))
        self.wanted = []
        self.top_k = max(each.top_k for each in self._alternatives)
        self.num_tokens += 1
        self._live = self._alternatives
        self.last_ids = [token for each in self._live for token in each.last_ids]
        return [0] * len(self._live)

    def _step(self, top_ids: list[list[int]], top_log_probs: list[list[float]]) -> list[int]:
        """Lets each search that goes on take its rows of a step."""
        self._stepped = [beam for search in self._live for beam in search.beams]
        parents: dict[_Continued, list[int]] = {}
        begin = 0
        for search in self._live:
            end = begin + len(search.last_ids)
            parents[search] = [begin + beam for beam in search.advance(top_ids[begin:end], top_log_probs[begin:end])]
            begin = end
        self.num_tokens += 1
        self._live = [search for search, own in parents.items() if own]
        self.last_ids = [token for search in self._live for token in search.last_ids]
        return [parent for own in parents.values() for parent in own]


class _Continued(BeamSearch):
    """The search behind one alternative, which is the last token of its prefix.

    Args:
        options: its own.
        log_prob: of the alternative.
        relative: the same, among those that are not eos.
        others: as `BeamSearch` takes them.
    """

    def __init__(self, options: DecodingOptions, log_prob: float, relative: float, **others: Any) -> None:
        self._relative = relative
        super().__init__(options, **others)
        while self.num_tokens < len(self._followed):
            self._follow_prefix()
        if self._of_tokens:
            self._of_tokens[0][-1] = log_prob
        self._num_before_choice = -1  # here CTranslate2 has no rule for eos

    @property
    def beams(self) -> list[list[int]]:
        """The ids of the live beams."""
        return self._prefixes

    def alternative(self) -> Hypothesis:
        """Returns the best hypothesis, with the score of an alternative."""
        (best,) = self.best()
        return replace(best, score=self._relative + best.score)

    def _score(self, log_prob: float) -> float:
        """Returns the score of what comes behind the alternative, which CTranslate2 compares by its own length."""
        score: float = log_prob / (self.num_tokens - len(self._followed)) ** self._options.length_penalty
        return score
