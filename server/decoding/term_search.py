"""Beam search whose translations have given terms.

The first tokens of terms, and the next tokens of the term that a beam is in, are candidates beside the best tokens. A
beam may end when it has written every term. An option such as `suppress` may forbid a term behind the tokens of a beam;
this beam may end without the term. Until a beam may end, three rules see to it that terms are written, and where they
belong:

- Of the beams that have come furthest with their terms, the best of each level goes on.
- What the tokens of a term cost does not count against a beam, because every beam has to pay for them. Only the first
  token counts, because it tells where the term belongs.
- If it is known which word the network has said instead of a term, that word is forbidden. The beam whose words fit
  best to the term is as likely as the beam whose words fit best to that word. So the term comes to the word's place,
  and an article there may change. If the network has said the word elsewhere, too, it is forbidden until the term is
  written.

The search begins shortly before the first term that the translation before it lacks: it writes what is before that
again. So beams differ in the article of the term, and not in words far before it. These tokens count for the score.

Hypotheses have their usual scores.

Sources of the ideas: Anderson et al., "Guided Open Vocabulary Image Captioning with Constrained Beam Search", EMNLP
2017; Post and Vilar, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation", NAACL 2018.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.steering import BANNED
from server.decoding.terms import TermTrie, Written

# In nats, for each term that a beam has written or is in. Half of it, and terms come late, behind what they should
# replace; twice that, and they come early.
_BONUS = 3.0

# What may extend a beam: a value by which these are compared, negated; the beam; the token; its log-probability; what
# the beam would have written, and its level. A step has a hundred of them: objects would take twice as long.
_Candidate = tuple[float, int, int, float, Written, int]


class TermSearch(BeamSearch):
    """See `BeamSearch`; its options have a beam of at least 2, and `terms`.

    Args:
        options: its own.
        others: as `BeamSearch` takes them.
    """

    def __init__(self, options: DecodingOptions, **others: Any) -> None:
        assert options.terms is not None, "there are terms"
        self._forms, self._terms = options.terms.forms, TermTrie(options.terms)
        self._written = [Written()]  # by each live beam
        self._ended: dict[tuple[int, ...], tuple[Written, int]] = {}  # by each hypothesis, and its length
        super().__init__(options, **others)
        self._num_given = len(self._followed)  # of tokens that do not count
        again = (*options.forced_prefix, *options.terms.replaced.begin)[: max(self.max_tokens - 2, self._num_forced)]
        self._followed = max(self._followed, again, key=len)
        self._want()

    def advance(
        self,
        top_ids: list[list[int]],
        top_log_probs: list[list[float]],
        wanted_log_probs: Sequence[float] = (),
    ) -> list[int]:
        """See `BeamSearch.advance`."""
        if self.num_tokens < len(self._followed):
            return self._follow_prefix(sum(wanted_log_probs))
        tokens = [
            dict(zip(ids[: self.top_k], log_probs, strict=False))
            for ids, log_probs in zip(top_ids, top_log_probs, strict=True)
        ]
        for (beam, token), log_prob in zip(self.wanted, wanted_log_probs, strict=True):
            tokens[beam].setdefault(token, log_prob)
        self.num_tokens += 1
        candidates = self._term_candidates(tokens)
        if not (candidates or self.finished or self._repetitive):
            self._finish_live()  # nothing may follow, and half a translation is better than none
            return []
        is_last = self.num_tokens == self.max_tokens
        if is_last:
            candidates.sort(key=lambda each: -each[-1])
        for candidate in candidates[: self._beam_size]:
            if is_last or candidate[2] == self._eos_id:
                self._end(candidate)
        chosen = self._choose(candidates)
        self._log_probs = [
            self._log_probs[parent] + log_prob - self._charge(parent, token)
            for _, parent, token, log_prob, *_ in chosen
        ]
        self._of_tokens = [self._with(parent, own) for _, parent, _, own, *_ in chosen] if self._of_tokens else []
        self._stepped = self._prefixes
        self._prefixes = [[*self._stepped[parent], token] for _, parent, token, *_ in chosen]
        self.last_ids = [token for _, _, token, *_ in chosen]
        self._written = [written for *_, written, _ in chosen]
        self._want()
        return [] if is_last else self._go_on([parent for _, parent, *_ in chosen])

    def best(self) -> list[Hypothesis]:
        """See `BeamSearch.best`.

        Hypotheses with more terms come first. Those with equally many are compared by their scores, without what terms
        cost at least. With it, hypotheses would win that repeat themselves: the more tokens one has, the less its terms
        cost in the mean.
        """
        least = max((written.cost for written, _ in self._ended.values()), default=0.0)
        power = self._options.length_penalty

        def key(hypothesis: Hypothesis) -> tuple[int, float]:
            written, length = self._ended.get(hypothesis.ids, (Written(), self.num_tokens))  # a loop was cut off
            log_prob = hypothesis.score * length**power - least
            return -self._terms.level(written), -log_prob / max(1, length - written.num_tokens) ** power

        ranked = [*sorted(self.finished, key=key), *sorted(self._repetitive, key=key)]
        return ranked[: self._options.num_hypotheses]

    def _keep(self, beams: Sequence[int], parents: Sequence[int]) -> list[int]:
        self._written = [self._written[beam] for beam in beams]
        self._want()
        return super()._keep(beams, parents)

    def _follow_prefix(self, log_prob: float = 0.0) -> list[int]:
        if self.num_tokens >= self._num_forced:
            self._written = [self._terms.after(self._written[0], self._followed[self.num_tokens], 0.0)]
        parents = super()._follow_prefix(log_prob)
        self._want()
        return parents

    def _want(self) -> None:
        if self.num_tokens < len(self._followed):
            self.wanted = [(0, self._followed[self.num_tokens])] if self.num_tokens >= self._num_given else []
        else:
            self.wanted = [
                (beam, token) for beam, written in enumerate(self._written) for token in self._terms.wanted(written)
            ]

    def _end(self, candidate: _Candidate) -> None:
        _, parent, token, log_prob, written, _ = candidate
        is_end = token == self._eos_id
        ids = [*self._prefixes[parent], *([] if is_end else [token])]
        self._ended[tuple(ids)] = written, self.num_tokens
        total = self._log_probs[parent] + log_prob - self._charge(parent, token)
        reason = FinishReason.STOP if is_end else FinishReason.LENGTH
        self._finish(ids, total, reason, self._with(parent, log_prob))

    def _finish_live(self) -> None:
        for prefix, written in zip(self._prefixes, self._written, strict=True):
            self._ended[tuple(prefix)] = written, self.max_tokens
        super()._finish_live()

    def _term_candidates(self, tokens: Sequence[Mapping[int, float]]) -> list[_Candidate]:
        """Returns which of the given tokens may extend a beam, best first.

        Of tokens that change nothing, the best of each beam will do.
        """
        terms, candidates = self._terms, []
        for own, before in zip(tokens, self._written, strict=True):
            terms.note(before, own)
        starts = [terms.replaced(*each) for each in zip(self._written, self._prefixes, strict=True)]
        wishes = self._wishes(tokens, starts)
        for parent, own in enumerate(tokens):
            before, prefix, total = self._written[parent], self._prefixes[parent], self._log_probs[parent]
            of_word, of_part, leading = terms.usual(before)
            in_word = self._compared(of_part)
            usual = in_word if of_word is of_part else self._compared(of_word), in_word
            if terms.may_join(before):
                leading = leading | {token for token in own if token in terms.word_parts}
            is_bound, left = before.node in terms.bound, self._beam_size
            for token, log_prob in own.items():
                is_leading, is_end = token in leading, token == self._eos_id
                if log_prob < BANNED / 2 or not (is_leading or is_end or left):
                    continue
                is_once = token in terms.once and terms.repeats(before, prefix, token)
                if is_once or (is_bound and terms.forbids(before, token)):
                    continue
                if is_leading:
                    after = terms.after(before, token, log_prob, wishes[parent].get(token, -math.inf))
                    gain, written, level = self._compared(after)
                elif token in starts[parent] or (is_end and self._must_go_on(prefix, before, of_word)):
                    continue
                else:
                    left -= not is_end
                    gain, written, level = usual[token in terms.word_parts]
                value = total + log_prob + gain
                if self._placeholders:
                    value -= self._charge(parent, token)
                candidates.append((-value, parent, token, log_prob, written, level))
        candidates.sort()
        return candidates

    def _must_go_on(self, prefix: list[int], before: Written, after: Written) -> bool:
        """Whether a beam lacks a term that options let it write behind its tokens.

        Args:
            prefix: its tokens.
            before: what it has written.
            after: what it has written if it ends.
        """
        if not self.is_steered:
            return not self._terms.is_done(after)
        is_within = before.node > 0 and before.done == after.done
        runs: list[tuple[int, ...]] = [(token,) for token in self._terms.wanted(before)] if is_within else []
        runs += [form for term, forms in enumerate(self._forms) if not after.done >> term & 1 for form in forms]
        return any(self._steering.allows(run, prefix) for run in runs)

    def _wishes(
        self, tokens: Sequence[Mapping[int, float]], starts: Sequence[Mapping[int, tuple[int, frozenset[int]]]]
    ) -> list[dict[int, float]]:
        """Returns how likely the first tokens of terms count for each beam.

        Args:
            tokens: of each beam, with their log-probabilities.
            starts: what terms replace, as `TermTrie.replaced` says it of each beam.
        """
        if not any(starts):
            return [{}] * len(tokens)
        word_at_best: dict[int, float] = {}  # the log-probability of the likeliest beam with a word that is replaced
        term_at_best: dict[int, float] = {}  # and with a term
        for own, total, of_beam in zip(tokens, self._log_probs, starts, strict=True):
            for word, (term, firsts) in of_beam.items():
                word_at_best[word] = max(word_at_best.get(word, -math.inf), total + own.get(word, -math.inf))
                best = total + max(own[first] for first in firsts)
                term_at_best[term] = max(term_at_best.get(term, -math.inf), best)
        for total, written in zip(self._log_probs, self._written, strict=True):
            for term, best in term_at_best.items():
                if best < total and self._terms.has_begun(written, term):
                    term_at_best[term] = total
        wishes: list[dict[int, float]] = []
        for own, of_beam in zip(tokens, starts, strict=True):
            wishes.append({})
            for word, (term, firsts) in of_beam.items():
                gap = word_at_best[word] - term_at_best[term]
                for first in firsts:
                    wishes[-1][first] = max(wishes[-1].get(first, -math.inf), own[first] + gap)
        return wishes

    def _compared(self, written: Written) -> tuple[float, Written, int]:
        """Returns what a beam is given for terms when it is compared, what it has written, and its level."""
        bonus = _BONUS * (written.done.bit_count() + (written.node > 0))
        return bonus - written.spared - written.spared_here, written, self._terms.level(written)

    def _choose(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        """Returns the beams that live on, best first.

        First the best beam of each of the highest levels, unless a beam of a higher level is better, and then the best
        of all.
        """
        going_on = [each for each in candidates if each[2] != self._eos_id]
        best_of_level: dict[int, int] = {}
        for index, candidate in enumerate(going_on):
            best_of_level.setdefault(candidate[-1], index)
        kept: set[int] = set()
        for level in sorted(best_of_level, reverse=True):
            if len(kept) < self._beam_size - 1 and best_of_level[level] < min(kept, default=len(going_on)):
                kept.add(best_of_level[level])
        others = (index for index in range(len(going_on)) if index not in kept)
        kept.update(itertools.islice(others, self._beam_size - len(kept)))
        return [going_on[index] for index in sorted(kept)]
