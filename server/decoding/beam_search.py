"""Choosing tokens: beam search over the k best tokens that the decoder step returns; greedy search is a beam of 1.

The rules are those of `model.search`, the oracle, restated for one step at a time; parity tests hold them together.
Those that a model may choose are `SearchRules`; without early stopping they are Hugging Face's (transformers 5).
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from server.decoding.loops import INTERVAL, LoopWatch
from server.decoding.options import DecodingOptions, SearchRules
from server.decoding.placeholders import charge
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.steering import Steering, Step

DEFAULT_RULES = SearchRules()


class BeamSearch:
    """The search state of one sentence.

    Args:
        options: its own; whether there is a shortlist does not matter here.
        max_tokens: most target tokens, eos and the prefixes included: more than the forced prefix has. A target prefix
            is followed as far as it leaves 2 of them.
        bos_id: fed to the first step.
        eos_id: ends a translation.
        rules: the model's.
        placeholders: for each id of a placeholder how often the source has it; see `placeholders.charge`. Empty if the
            source has none. Greedy search has no choice.
        source_ids: with eos, for options that look at them.

    Attributes:
        last_ids: tokens that the live beams feed to the next step, best beam first.
        max_tokens: most target tokens, with prefixes and eos.
        num_tokens: target tokens of every live beam with its prefixes, which is the length of its self-attention cache.
        top_k: best tokens of each row that a step must return. In this class: W + 1, or 2W with placeholders; 1 for
            greedy search.
        is_greedy: it has a beam of 1 and is past its prefixes, so that `advance_greedily` does.
        is_steered: it is past its prefixes and its options change steps (`server.decoding.steering`).
        finished: hypotheses that have ended, in the order in which they did.
        wanted: beams and tokens whose log-probabilities `advance` has to be given, as they may not be among the best.
    """

    def __init__(
        self,
        options: DecodingOptions,
        *,
        max_tokens: int,
        bos_id: int,
        eos_id: int,
        rules: SearchRules = DEFAULT_RULES,
        placeholders: Mapping[int, int] = MappingProxyType({}),
        source_ids: Sequence[int] = (),
    ) -> None:
        self._options, self._beam_size = options, options.beam_size
        self.max_tokens = max_tokens
        # A forced eos needs no step: whatever lives one token before the limit ends there.
        self._last_step = max_tokens - 1 if rules.forced_eos else max_tokens
        self._eos_id, self._rules = eos_id, rules
        self._placeholders = placeholders if options.beam_size > 1 else {}
        # Of a row, W tokens live on at most; one more may be eos. Terms seldom forbid more than one; then a beam has a
        # candidate fewer. Placeholders are charged so much where they do not belong that others take their places.
        several = options.beam_size * 2 if self._placeholders else options.beam_size + 1
        self.top_k = several if options.beam_size > 1 else 1
        self._num_forced = len(options.forced_prefix)
        given = () if options.prefix_bias_beta > 0 else options.target_prefix
        self._followed = (*options.forced_prefix, *given)[: max(max_tokens - 2, self._num_forced)]
        self._num_before_choice = len(self._followed) if given else -1
        may_end = options.end_loops and not options.given_targets
        self._loops = LoopWatch(source_ids, len(options.target_prefix)) if may_end else None
        self._steering = Steering(options, eos_id)
        self._ranks_all = options.coverage_penalty > 0 and rules.early_stopping  # what ended last may be the best
        self._most_finished = math.floor(options.beam_size * options.patience + 0.5)
        self.is_greedy = self.is_steered = False
        self.wanted: list[tuple[int, int]] = []
        self._prefixes: list[list[int]] = [[]]
        self._stepped, self._log_probs = self._prefixes, [0.0]  # the former of the last step's beams
        self._of_tokens: list[list[float]] = [[]] if options.with_tokens else []  # log-probabilities, if asked for
        self.finished: list[Hypothesis] = []
        self._repetitive: list[Hypothesis] = []  # which end with loops: taken if there are no others
        self._bos_id, self.last_ids, self.num_tokens = bos_id, [bos_id], 0
        if not self._followed:
            self._begin()

    def _begin(self) -> None:
        """Notes that the prefixes, if there are any, are behind."""
        self.is_steered, self.is_greedy = self._options.is_steered, self._beam_size == 1

    def advance(
        self,
        top_ids: list[list[int]],
        top_log_probs: list[list[float]],
        wanted_log_probs: Sequence[float] = (),  # noqa: ARG002  # of searches that want any
    ) -> list[int]:
        """Takes one step.

        Args:
            top_ids: for each live beam at least `top_k`, best first.
            top_log_probs: their exact log-probabilities; greedy search chooses the same by logits.
            wanted_log_probs: of what is `wanted`, in its order.

        Returns:
            For each beam that lives on, best first, the index of the beam it extends; empty when the search is over.
        """
        if self.num_tokens < len(self._followed):
            return self._follow_prefix()
        if self._beam_size == 1:
            return [0] if self.advance_greedily(top_ids[0][0], top_log_probs[0][0]) else []
        return self._extend(top_ids, top_log_probs)

    def _extend(self, top_ids: list[list[int]], top_log_probs: list[list[float]]) -> list[int]:
        """Does what `advance` does behind the prefix, with a beam of any width."""
        candidates = self._candidates(top_ids, top_log_probs)
        if self.num_tokens == self._num_before_choice and top_ids[0][candidates[0][2]] != self._eos_id:
            # CTranslate2's rule: the prefix alone is a hypothesis only if it is the best.
            candidates = [each for each in candidates[: self._beam_size] if top_ids[0][each[2]] != self._eos_id]
        parents: list[int] = []
        ids: list[int] = []
        totals: list[float] = []
        of_tokens: list[list[float]] = []
        self.num_tokens += 1
        for rank, (negated, parent, place) in enumerate(candidates[: 2 * self._beam_size]):
            token = top_ids[parent][place]
            if token == self._eos_id or self.num_tokens == self.max_tokens:
                if rank < self._beam_size:
                    reason = FinishReason.STOP if token == self._eos_id else FinishReason.LENGTH
                    last = [] if token == self._eos_id else [token]
                    own = self._with(parent, top_log_probs[parent][place])
                    self._finish([*self._prefixes[parent], *last], -negated, reason, own)
            elif len(parents) < self._beam_size:
                parents.append(parent)
                ids.append(token)
                totals.append(-negated)
                if self._of_tokens:
                    of_tokens.append(self._with(parent, top_log_probs[parent][place]))
        self._stepped = self._prefixes
        self._prefixes = [[*self._stepped[parent], token] for parent, token in zip(parents, ids, strict=True)]
        self._log_probs, self.last_ids, self._of_tokens = totals, ids, of_tokens
        return self._go_on(parents)

    def change(self, rows: Sequence[int], step: Step) -> None:
        """Changes the rows of the live beams in a step, before `advance` takes it: see `Steering.change`."""
        for row, own in zip(rows, self._prefixes, strict=True):
            self._steering.change(step, row, own, self.top_k)

    def _go_on(self, parents: list[int]) -> list[int]:
        """Ends loops, and the search if it is over; returns the parents of the beams that live on."""
        if self._loops is not None and self.num_tokens % INTERVAL == 0:
            kept = [self._loops.find(prefix) for prefix in self._prefixes]
            live = [beam for beam, length in enumerate(kept) if length is None]
            if len(live) < len(kept):
                for beam, length in enumerate(kept):
                    if length is not None:
                        prefix, total = self._prefixes[beam], self._log_probs[beam]
                        self._note_repetition(prefix[:length], total, self._with(beam)[:length])
                parents = self._keep(live, parents)
        if not parents or (len(self.finished) >= self._most_finished and self._is_over()):
            return []
        if self.num_tokens >= self._last_step:
            self._finish_live()
            return []
        return parents

    def _keep(self, beams: Sequence[int], parents: Sequence[int]) -> list[int]:
        """Lets only these beams live on, and returns the parents of these."""
        self._prefixes = [self._prefixes[beam] for beam in beams]
        self._log_probs = [self._log_probs[beam] for beam in beams]
        self._of_tokens = [self._of_tokens[beam] for beam in beams] if self._of_tokens else []
        self.last_ids = [self.last_ids[beam] for beam in beams]
        return [parents[beam] for beam in beams]

    def _note_repetition(self, ids: list[int], log_prob: float, of_tokens: list[float]) -> None:
        """Takes a beam without its loop for a hypothesis; its score is of the whole beam."""
        self._repetitive.append(self._hypothesis(ids, log_prob, FinishReason.REPETITION, of_tokens))

    def _with(self, beam: int, *log_probs: float) -> list[float]:
        """Returns the log-probabilities of a beam's tokens, and more; none unless the options ask for them."""
        return [*self._of_tokens[beam], *log_probs] if self._of_tokens else []

    def _candidates(self, top_ids: list[list[int]], top_log_probs: list[list[float]]) -> list[tuple[float, int, int]]:
        """Returns what may extend a beam, best first: its negated log-probability, the beam, and the token's place."""
        width = min(self.top_k, len(top_ids[0]))
        candidates = [
            (-(total + log_prob), parent, place)
            for parent, (total, log_probs) in enumerate(zip(self._log_probs, top_log_probs, strict=True))
            for place, log_prob in enumerate(log_probs[:width])
        ]
        if self._placeholders:
            candidates = [
                (negated + self._charge(parent, top_ids[parent][place]), parent, place)
                for negated, parent, place in candidates
            ]
        candidates.sort()  # of equals, the better beam's better token first
        return candidates

    def _charge(self, beam: int, token: int) -> float:
        return charge(self._placeholders, self._prefixes[beam], token, self._eos_id) if self._placeholders else 0.0

    def _follow_prefix(self, log_prob: float = 0.0) -> list[int]:
        """Feeds the next token of the prefixes to the one beam that there is, whatever the step has returned.

        Args:
            log_prob: of the token, as far as it counts.
        """
        self.last_ids = [self._followed[self.num_tokens]]
        if self.num_tokens >= self._num_forced:
            self._prefixes[0] += self.last_ids
            self._log_probs = [self._log_probs[0] + log_prob]
            self._of_tokens = [self._with(0, log_prob)] if self._of_tokens else []
        self.num_tokens += 1
        if self.num_tokens == len(self._followed):
            self._begin()
        return [0]

    def _is_over(self) -> bool:
        """Says whether no live beam can be better than the W that are finished, by the model's rule."""
        if self._rules.early_stopping or not self._log_probs:
            return True
        worst = min(hypothesis.score for hypothesis in self.finished)
        return self._score(self._log_probs[0]) <= worst

    def _finish_live(self) -> None:
        """Finishes what lives at the last step."""
        self.num_tokens = self.max_tokens  # with the eos that may be forced
        for beam, (prefix, total) in enumerate(zip(self._prefixes, self._log_probs, strict=True)):
            cost = self._charge(beam, self._eos_id) if self._rules.forced_eos else 0.0
            self._finish(prefix, total - cost, FinishReason.LENGTH, self._with(beam))

    def num_common(self, beam: int, other: int) -> int:
        """Returns how many positions, bos included, are the same in two beams that the last step was taken with."""
        pairs = zip(self._stepped[beam], self._stepped[other], strict=True)
        start = 1 + self._num_forced
        return next((i for i, (mine, others) in enumerate(pairs, start=start) if mine != others), self.num_tokens)

    def best(self) -> list[Hypothesis]:
        """Returns the `num_hypotheses` best, best first."""
        both = self.finished, self._repetitive
        ranked = [each for own in both for each in sorted(own, key=lambda hypothesis: -hypothesis.score)]
        return ranked[: self._options.num_hypotheses]

    def target_ids(self, hypothesis: Hypothesis, *, with_eos: bool = False) -> list[int]:
        """Returns what a step would have been fed for a hypothesis: bos, the forced prefix, its ids, and perhaps eos.

        The last one is missing if the hypothesis is as long as it may be, because the model has no position for it.
        """
        end = [self._eos_id] if with_eos and hypothesis.finish_reason is FinishReason.STOP else []
        return [self._bos_id, *self._options.forced_prefix, *hypothesis.ids, *end][: self.max_tokens]

    @property
    def ids_so_far(self) -> list[int]:
        """The ids of the best live beam, without prefix and eos. Any thread may ask, before the end."""
        prefixes = self._prefixes
        return [token for token in prefixes[0] if token != self._eos_id] if prefixes else []

    def advance_greedily(self, token: int, log_prob: float) -> bool:
        """Takes a step with a beam of 1, behind its prefix; says whether the beam lives on."""
        self.num_tokens += 1
        self._log_probs[0] += log_prob
        if self._of_tokens:
            self._of_tokens[0].append(log_prob)
        if token == self._eos_id:
            self._finish(self._prefixes[0], self._log_probs[0], FinishReason.STOP, self._with(0))
            return False
        self._prefixes[0].append(token)
        self.last_ids = [token]
        if self._loops is not None and self.num_tokens % INTERVAL == 0:
            length = self._loops.find(self._prefixes[0])
            if length is not None:
                self._note_repetition(self._prefixes[0][:length], self._log_probs[0], self._with(0)[:length])
                return False
        if self.num_tokens >= self._last_step:
            self._finish_live()
            return False
        return True

    def _finish(self, ids: list[int], log_prob: float, reason: FinishReason, of_tokens: list[float]) -> None:
        # At the limit nothing has looked for a loop yet, unless the search is greedy.
        is_looked_for = reason is FinishReason.LENGTH and self.num_tokens % INTERVAL == 0
        if self._loops is not None and (is_looked_for or len(ids) > self._loops.most_tokens):
            length = self._loops.find(ids)
            if length is not None:
                self._note_repetition(ids[:length], log_prob, of_tokens[:length])
                return
        self.finished.append(self._hypothesis(ids, log_prob, reason, of_tokens))
        if len(self.finished) > self._most_finished and not self._ranks_all:
            worst = min(reversed(self.finished), key=lambda hypothesis: hypothesis.score)
            self.finished.remove(self.finished[-1] if self._rules.early_stopping else worst)

    def _hypothesis(self, ids: list[int], log_prob: float, reason: FinishReason, of_tokens: list[float]) -> Hypothesis:
        score = self._score(log_prob) if self._options.needs_log_probs else 0.0  # if not, what was added up are logits
        return Hypothesis(tuple(ids), score, reason, tuple(of_tokens))

    def _score(self, log_prob: float) -> float:
        return float(log_prob / self.num_tokens**self._options.length_penalty)
