"""Beam search whose translations have given terms.

The first tokens of terms, and the next tokens of the term that a beam is in, are candidates beside the best tokens. A
beam may end once it has written every term. Until then, three rules see to it that terms are written, and where they
belong:

- Of the beams that have come furthest with their terms, the best of each level goes on.
- What the tokens of a term cost does not count against a beam, because every beam has to pay for them. Only the first
  token counts, because it tells where the term belongs.
- If it is known which word the network has said instead of a term, that word is forbidden until the term is written,
  and the term is as likely as the word.

Hypotheses have their usual scores.

Sources of the ideas: Anderson et al., "Guided Open Vocabulary Image Captioning with Constrained Beam Search", EMNLP
2017; Post and Vilar, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation", NAACL 2018.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.terms import TermTrie, Written

# In nats, for each term that a beam has written or is in. Half of it, and terms come late, behind what they should
# replace; twice that, and they come early.
_BONUS = 3.0


class _Candidate(NamedTuple):
    """A beam and the token that may extend it, with what it would have written."""

    value: float  # by which beams are compared
    log_prob: float  # of the beam with the token
    token_log_prob: float
    parent: int
    token: int
    written: Written


class TermSearch(BeamSearch):
    """See `BeamSearch`; its options have a beam of at least 2, and `terms`.

    Args:
        options: its own.
        others: as `BeamSearch` takes them.
    """

    def __init__(self, options: DecodingOptions, **others: Any) -> None:
        assert options.terms is not None, "there are terms"
        self._terms = TermTrie(options.terms)
        self._written = [Written()]  # by each live beam
        self._ended: dict[tuple[int, ...], tuple[Written, int]] = {}  # by each hypothesis, and its length
        super().__init__(options, **others)

    def advance(
        self, top_ids: list[list[int]], top_log_probs: list[list[float]], wanted_log_probs: Sequence[float] = ()
    ) -> list[int]:
        """See `BeamSearch.advance`."""
        if self.num_tokens < self._num_forced:
            return self._follow_prefix()
        tokens = [
            dict(zip(ids[: self.top_k], log_probs, strict=False))
            for ids, log_probs in zip(top_ids, top_log_probs, strict=True)
        ]
        for (beam, token), log_prob in zip(self.wanted, wanted_log_probs, strict=True):
            tokens[beam].setdefault(token, log_prob)
        self.num_tokens += 1
        candidates = self._term_candidates(tokens)
        is_last = self.num_tokens == self._max_tokens
        if is_last:
            candidates.sort(key=lambda each: -self._terms.level(each.written))
        for candidate in candidates[: self._beam_size]:
            if is_last or candidate.token == self._eos_id:
                self._end(candidate)
        chosen = self._choose([each for each in candidates if each.token != self._eos_id])
        self._of_tokens = [self._with(each.parent, each.token_log_prob) for each in chosen] if self._of_tokens else []
        self._stepped = self._prefixes
        self._prefixes = [[*self._stepped[each.parent], each.token] for each in chosen]
        self._log_probs = [each.log_prob for each in chosen]
        self.last_ids = [each.token for each in chosen]
        self._written = [each.written for each in chosen]
        self._want()
        if is_last or not chosen or (len(self._finished) == self._beam_size and self._is_over()):
            return []
        if self.num_tokens == self._last_step:
            self._finish_live()
            return []
        return [each.parent for each in chosen]

    def best(self) -> list[Hypothesis]:
        """See `BeamSearch.best`.

        Hypotheses with more terms come first. Those with equally many are compared by their scores, without what each
        of them has to pay for terms. With it, hypotheses would win that repeat themselves: the more tokens one has, the
        less its terms cost in the mean.
        """
        paid = max((written.paid for written, _ in self._ended.values()), default=0.0)

        def key(hypothesis: Hypothesis) -> tuple[int, float]:
            written, num_tokens = self._ended.get(hypothesis.ids, (Written(), self.num_tokens))
            spared = (written.spared + paid) / num_tokens**self._options.length_penalty
            return -self._terms.level(written), spared - hypothesis.score

        return sorted(self._finished, key=key)[: self._options.num_hypotheses]

    def _begin(self) -> None:
        super()._begin()
        self._want()

    def _want(self) -> None:
        self.wanted = [
            (beam, token) for beam, written in enumerate(self._written) for token in self._terms.wanted(written)
        ]

    def _end(self, candidate: _Candidate) -> None:
        is_end = candidate.token == self._eos_id
        ids = [*self._prefixes[candidate.parent], *([] if is_end else [candidate.token])]
        self._ended[tuple(ids)] = candidate.written, self.num_tokens
        reason = FinishReason.STOP if is_end else FinishReason.LENGTH
        self._finish(ids, candidate.log_prob, reason, self._with(candidate.parent, candidate.token_log_prob))

    def _finish_live(self) -> None:
        for prefix, written in zip(self._prefixes, self._written, strict=True):
            self._ended[tuple(prefix)] = written, self._max_tokens
        super()._finish_live()

    def _term_candidates(self, tokens: Sequence[Mapping[int, float]]) -> list[_Candidate]:
        """Returns what may extend a beam, best first, of tokens with their log-probabilities for each beam."""
        candidates = []
        for parent, own in enumerate(tokens):
            before = self._written[parent]
            starts = self._terms.replaced(before)
            wishes: dict[int, float] = {}
            for replaced in own.keys() & starts:
                wishes |= {start: max(wishes.get(start, -math.inf), own[replaced]) for start in starts[replaced]}
            for token, log_prob in own.items():
                written = self._terms.after(before, token, log_prob, wishes.get(token, -math.inf))
                if token in starts or (token == self._eos_id and not self._terms.is_done(written)):
                    continue
                total = self._log_probs[parent] + log_prob
                if self._placeholders:
                    total -= self._charge(parent, token)
                bonus = _BONUS * (written.done.bit_count() + (written.node > 0))
                value = total - written.spared - written.spared_here + bonus
                candidates.append(_Candidate(value, total, log_prob, parent, token, written))
        candidates.sort(key=lambda each: (-each.value, each.parent, each.token))
        return candidates

    def _choose(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        """Returns the beams that live on, best first: of the highest levels the best, then the best of all."""
        best_of_level: dict[int, int] = {}
        for index, candidate in enumerate(candidates):
            best_of_level.setdefault(self._terms.level(candidate.written), index)
        kept = {best_of_level[level] for level in sorted(best_of_level, reverse=True)[: self._beam_size - 1]}
        others = (index for index in range(len(candidates)) if index not in kept)
        kept |= set(itertools.islice(others, self._beam_size - len(kept)))
        return [candidates[index] for index in sorted(kept)]
