"""Choosing tokens: beam search over the k best tokens that the decoder step returns; greedy search is a beam of 1.

The rules are those of `model.search`, the oracle, restated for one step at a time; parity tests hold them together.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FinishedBeam:
    """A hypothesis: ids without eos, score = log-probability / length^length_penalty, and whether eos ended it."""

    ids: tuple[int, ...]
    score: float
    is_complete: bool


class BeamSearch:
    """The search state of one sentence.

    `last_ids` are the tokens that its live beams feed to the next step, best beam first. If it `is_greedy`, with a beam
    of 1, `advance_greedily` does.
    """

    def __init__(self, *, beam_size: int, length_penalty: float, max_tokens: int, bos_id: int, eos_id: int) -> None:
        self._beam_size = beam_size
        self._length_penalty = length_penalty
        self._max_tokens = max_tokens
        self._eos_id = eos_id
        self.is_greedy = beam_size == 1
        self._prefixes: list[list[int]] = [[]]
        self._stepped = self._prefixes  # of the last step's beams
        self._log_probs = [0.0]
        self._finished: list[FinishedBeam] = []
        self.last_ids = [bos_id]
        self.num_tokens = 0  # target tokens of every live beam: also the length of its self-attention cache

    @property
    def top_k(self) -> int:
        """How many best tokens of each row a step must return: 2W, or 1 for greedy search."""
        return 1 if self._beam_size == 1 else 2 * self._beam_size

    def advance(self, top_ids: list[list[int]], top_log_probs: list[list[float]]) -> list[int]:
        """Takes one step.

        Args:
            top_ids: for each live beam at least `top_k`, best first.
            top_log_probs: their exact log-probabilities; greedy search chooses the same by logits.

        Returns:
            For each beam that lives on, best first, the index of the beam it extends; empty when the search is over.
        """
        width = min(self.top_k, len(top_ids[0]))
        candidates = [
            (-(total + log_prob), parent, place)
            for parent, (total, log_probs) in enumerate(zip(self._log_probs, top_log_probs, strict=True))
            for place, log_prob in enumerate(log_probs[:width])
        ]
        candidates.sort()  # of equals, the better beam's better token first
        parents: list[int] = []
        ids: list[int] = []
        totals: list[float] = []
        self.num_tokens += 1
        for rank, (negated, parent, place) in enumerate(candidates[: 2 * self._beam_size]):
            token = top_ids[parent][place]
            if token == self._eos_id:
                if rank < self._beam_size:
                    self._finish(self._prefixes[parent], -negated, is_complete=True)
            elif len(parents) < self._beam_size:
                parents.append(parent)
                ids.append(token)
                totals.append(-negated)
        self._stepped = self._prefixes
        self._prefixes = [[*self._stepped[parent], token] for parent, token in zip(parents, ids, strict=True)]
        self._log_probs, self.last_ids = totals, ids
        if self.num_tokens == self._max_tokens:
            for prefix, total in zip(self._prefixes, totals, strict=True):
                self._finish(prefix, total, is_complete=False)
            return []
        return [] if len(self._finished) == self._beam_size else parents

    def num_common(self, beam: int, other: int) -> int:
        """Returns how many positions, bos included, are the same in two beams that the last step was taken with."""
        pairs = zip(self._stepped[beam], self._stepped[other], strict=True)
        return next((i for i, (mine, others) in enumerate(pairs, start=1) if mine != others), self.num_tokens)

    def best(self, count: int) -> list[FinishedBeam]:
        """Returns the `count` best hypotheses, best first."""
        return sorted(self._finished, key=lambda hypothesis: -hypothesis.score)[:count]

    def advance_greedily(self, token: int, log_prob: float) -> bool:
        """Does what `advance` does with a beam of 1, in a third of the time; says whether the beam lives on."""
        self.num_tokens += 1
        self._log_probs[0] += log_prob
        if token == self._eos_id:
            self._finish(self._prefixes[0], self._log_probs[0], is_complete=True)
            return False
        self._prefixes[0].append(token)
        self.last_ids = [token]
        if self.num_tokens == self._max_tokens:
            self._finish(self._prefixes[0], self._log_probs[0], is_complete=False)
            return False
        return True

    def _finish(self, ids: list[int], log_prob: float, is_complete: bool) -> None:
        if len(self._finished) < self._beam_size:
            score = log_prob / self.num_tokens**self._length_penalty
            self._finished.append(FinishedBeam(tuple(ids), score, is_complete))


def default_max_tokens(source_tokens: int, limit: int) -> int:
    """Returns the default bound on target tokens: twice the source's plus 16, at most `limit`."""
    return min(limit, 2 * source_tokens + 16)
