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

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.steering import BANNED
from server.decoding.term_standing import Standing
from server.decoding.term_trie import TermTrie, Written

_LEAST = BANNED / 2  # what options forbid has a lower log-probability, and all else a higher one

# What may extend a beam: a cost; the beam; the token; its log-probability; and how the beam stands then. Candidates are
# compared by their costs, the least first. A cost is the sum of the beam's log-probability with the token and of the
# standing's gain, negated, and what is charged for placeholders. A step has dozens of candidates. As objects they would
# take twice as long.
_Candidate = tuple[float, int, int, float, Standing]


class TermSearch(BeamSearch):
    """See `BeamSearch`; its options have a beam of at least 2, and `terms`.

    Args:
        options: its own.
        others: as `BeamSearch` takes them.
    """

    def __init__(self, options: DecodingOptions, **others: Any) -> None:
        assert options.terms is not None, "there are terms"
        self._forms, self._terms = options.terms.forms, TermTrie(options.terms, others["eos_id"])
        self._standings = [Standing(Written(), self._terms)]  # of each live beam
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
            candidates.sort(key=lambda each: -each[-1].level)
        for candidate in candidates[: self._beam_size]:
            if is_last or candidate[2] == self._eos_id:
                self._end(candidate)
        chosen = self._choose(candidates)
        self._log_probs = [-cost - standing.gain for cost, _, _, _, standing in chosen]
        self._of_tokens = [self._with(parent, own) for _, parent, _, own, _ in chosen] if self._of_tokens else []
        self._stepped = self._prefixes
        self._prefixes = [[*self._stepped[parent], token] for _, parent, token, _, _ in chosen]
        self.last_ids = [token for _, _, token, _, _ in chosen]
        self._standings = [standing for _, _, _, _, standing in chosen]
        self._want()
        return [] if is_last else self._go_on([parent for _, parent, _, _, _ in chosen])

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
        self._standings = [self._standings[beam] for beam in beams]
        self._want()
        return super()._keep(beams, parents)

    def _follow_prefix(self, log_prob: float = 0.0) -> list[int]:
        if self.num_tokens >= self._num_forced:
            written = self._terms.after(self._standings[0].written, self._followed[self.num_tokens], 0.0)
            self._standings = [Standing(written, self._terms)]
        parents = super()._follow_prefix(log_prob)
        self._want()
        return parents

    def _want(self) -> None:
        if self.num_tokens < len(self._followed):
            self.wanted = [(0, self._followed[self.num_tokens])] if self.num_tokens >= self._num_given else []
        else:
            self.wanted = [(beam, token) for beam, own in enumerate(self._standings) for token in own.ahead.wanted]

    def _end(self, candidate: _Candidate) -> None:
        cost, parent, token, log_prob, standing = candidate
        is_end = token == self._eos_id
        ids = [*self._prefixes[parent], *([] if is_end else [token])]
        self._ended[tuple(ids)] = standing.written, self.num_tokens
        reason = FinishReason.STOP if is_end else FinishReason.LENGTH
        self._finish(ids, -cost - standing.gain, reason, self._with(parent, log_prob))

    def _finish_live(self) -> None:
        for prefix, standing in zip(self._prefixes, self._standings, strict=True):
            self._ended[tuple(prefix)] = standing.written, self.max_tokens
        super()._finish_live()

    def _term_candidates(self, tokens: Sequence[Mapping[int, float]]) -> list[_Candidate]:
        """Returns which of the given tokens may extend a beam, best first."""
        written = [standing.written for standing in self._standings]
        for own, before in zip(tokens, written, strict=True):
            if before.node:
                self._terms.note(before, own)
        starts = [self._terms.replaced(*each) for each in zip(written, self._prefixes, strict=True)]
        wishes = self._wishes(tokens, starts)
        candidates: list[_Candidate] = []
        for beam, own in enumerate(tokens):
            candidates += self._candidates_of(beam, own, starts[beam].keys(), wishes[beam])
        if self._placeholders:
            candidates = [(each[0] + self._charge(each[1], each[2]), *each[1:]) for each in candidates]
        candidates.sort()
        return candidates

    def _candidates_of(
        self, beam: int, tokens: Mapping[int, float], starts: AbstractSet[int], wishes: Mapping[int, float]
    ) -> list[_Candidate]:
        """Returns what may extend a beam. Of tokens that have nothing to do with terms, the W best will do.

        Args:
            beam: its index.
            tokens: the next tokens and their log-probabilities: first the best tokens, then the wanted ones.
            starts: tokens of words that terms replace. They are forbidden unless they lead to terms.
            wishes: how likely the first tokens of terms count.
        """
        standing, total, word_parts = self._standings[beam], self._log_probs[beam], self._terms.word_parts
        leading, special, _, may_join, is_bound = standing.ahead
        usual = standing.usual or (standing, standing)
        if starts:
            special = special | starts
        if may_join:
            leading = leading | {token for token in tokens if token in word_parts}
            special = special | leading
        if is_bound:
            special = tokens.keys()
        candidates: list[_Candidate] = []
        left = self._beam_size
        for token, log_prob in tokens.items():
            if log_prob < _LEAST:
                continue
            after = usual[token in word_parts]
            if token in special:
                is_replaced = token in starts and token not in leading
                is_checked = is_bound or token in self._terms.checked
                if is_replaced or (is_checked and not self._allows(beam, token)):
                    continue
                if token in leading:
                    written = self._terms.after(standing.written, token, log_prob, wishes.get(token, -math.inf))
                    after = Standing(written, self._terms)
            elif left:
                left -= 1
            else:
                continue
            candidates.append((-(total + log_prob + after.gain), beam, token, log_prob, after))
        return candidates

    def _allows(self, beam: int, token: int) -> bool:
        """Whether the terms allow that a beam goes on with a special token."""
        terms, before, prefix = self._terms, self._standings[beam].written, self._prefixes[beam]
        if terms.repeats(before, prefix, token) or terms.forbids(before, token):
            return False
        return token != self._eos_id or not self._must_go_on(prefix, before, terms.usual(before)[0])

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
        for total, standing in zip(self._log_probs, self._standings, strict=True):
            for term, best in term_at_best.items():
                if best < total and self._terms.has_begun(standing.written, term):
                    term_at_best[term] = total
        wishes: list[dict[int, float]] = []
        for own, of_beam in zip(tokens, starts, strict=True):
            wishes.append({})
            for word, (term, firsts) in of_beam.items():
                gap = word_at_best[word] - term_at_best[term]
                for first in firsts:
                    wishes[-1][first] = max(wishes[-1].get(first, -math.inf), own[first] + gap)
        return wishes

    def _choose(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        """Returns the beams that live on, best first.

        First the best beam of each of the highest levels, unless a beam of a higher level is better, and then the best
        of all.
        """
        highest = -1
        best_of_level: list[int] = []
        for index, (_, _, token, _, standing) in enumerate(candidates):
            if standing.level > highest and token != self._eos_id:
                highest = standing.level
                best_of_level.append(index)
        kept = set(best_of_level[1 - self._beam_size :])
        for index, candidate in enumerate(candidates):
            if len(kept) == self._beam_size:
                break
            if candidate[2] != self._eos_id:
                kept.add(index)
        return [candidates[index] for index in sorted(kept)]
