"""What searches ask of a step beside its best tokens: options change logits, and log-probabilities are looked up.

The options are penalties, bans and a bias, with the rules of CTranslate2 4. They change few tokens of a row. So a row's
sum over the vocabulary is not added up again: it changes by what these tokens change. And the best tokens that the
step has returned remain the best, unless one of them is changed.

The other sentences of the batch wait meanwhile, so single values are read and written without numpy's functions. A step
of the network drives the code of these from the processor's caches: a call then takes as long as 20 tokens.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from server.decoding.options import DecodingOptions

if TYPE_CHECKING:
    from server.decoding.beam_search import BeamSearch

BAN = math.nan  # in the place of a factor, for a token that is banned
BANNED = -1e30  # its logit; finite, so that beams can be compared, also when divided by a temperature
# Of a row's probability that must be left for its sum to be known by subtraction. Half, and scores lose twice as much
# of their precision; twice, and more rows are added up again.
_LEAST_LEFT = 0.125


class Step(NamedTuple):
    """What a decoder has returned, which options change in place.

    Attributes:
        logits: [B, V].
        top_ids: of each row, the k best tokens, best first. Lists, because single values of them are faster.
        top_log_probs: their log-probabilities.
        has_log_probs: False if `top_log_probs` has logits instead, because no sentence of the batch needs more.
    """

    logits: NDArray[np.float32]
    top_ids: list[list[int]]
    top_log_probs: list[list[float]]
    has_log_probs: bool = True


def change_step(searches: "Sequence[tuple[BeamSearch, Sequence[int]]]", step: Step) -> list[list[float]]:
    """Changes rows of a step as options ask for it, and looks up what is wanted, before the searches take the step.

    It changes the step in place, so a search takes a step that is steered as any other.

    Args:
        searches: that are steered or want log-probabilities, each with the rows of its live beams.
        step: with as many best tokens as each search's `top_k` at least.

    Returns:
        For each search the log-probabilities that it wants.
    """
    for search, rows in searches:
        if search.is_steered:
            search.change(rows, step)
    return [
        log_probs_of(step, [(rows[beam], token) for beam, token in search.wanted]) if search.wanted else []
        for search, rows in searches
    ]


class Steering:
    """Says which logits of one sentence's beams change.

    Args:
        options: its own.
        eos_id: ends a translation.
    """

    def __init__(self, options: DecodingOptions, eos_id: int) -> None:
        self._options = options
        self._eos_id = eos_id
        self._never, self._by_token = _bans(options.suppressed) if options.suppressed else ({}, {})

    def change(self, step: Step, row: int, written: list[int], num_needed: int) -> None:
        """Changes one row of a step as if the network had said so.

        Args:
            step: with the row.
            row: of a beam.
            written: its ids, without the forced prefix.
            num_needed: of the best tokens.
        """
        factors, given, place = self._factors(written), self._options.target_prefix, len(written)
        if self._options.prefix_bias_beta > 0 and place < len(given) and tuple(written) == given[:place]:
            steer(step, row, factors, num_needed, given[place], self._options.prefix_bias_beta)
        elif factors:
            steer(step, row, factors, num_needed)

    def allows(self, run: Sequence[int], written: list[int]) -> bool:
        """Returns whether no ban is on a run of tokens that follows some ids, which lack the forced prefix."""
        ids = [*written, *run]
        return not any(math.isnan(self._factors(ids[:end]).get(ids[end], 1.0)) for end in range(len(written), len(ids)))

    def _factors(self, written: list[int]) -> dict[int, float]:
        """Returns the tokens whose logits change, and what `steer` divides them by."""
        options = self._options
        ids = [*options.forced_prefix, *written]
        factors = dict.fromkeys(ids, options.repetition_penalty) if options.repetition_penalty != 1 else {}
        if len(written) < options.min_output_tokens:
            factors[self._eos_id] = BAN
        factors |= self._never
        if ids and ids[-1] in self._by_token:
            factors |= dict.fromkeys(self._ends_of_phrases(ids), BAN)
        if options.no_repeat_ngram_size > 0:
            factors |= dict.fromkeys(self._ends_of_ngrams(ids), BAN)
        return factors

    def _ends_of_phrases(self, ids: list[int]) -> Iterator[int]:
        for phrase in self._by_token[ids[-1]]:
            if ids[1 - len(phrase) :] == list(phrase[:-1]):
                yield phrase[-1]

    def _ends_of_ngrams(self, ids: list[int]) -> Iterator[int]:
        """Yields the tokens with which the tail would be an n-gram that is there already."""
        size = self._options.no_repeat_ngram_size
        if size == 1:
            yield from ids
        elif 1 < size <= len(ids) and ids.count(ids[-1]) > 1:
            tail = ids[1 - size :]
            for end in range(size - 1, len(ids)):
                if ids[end - 1] == tail[-1] and ids[end - size + 1 : end] == tail:
                    yield ids[end]


@lru_cache(maxsize=64)
def _bans(phrases: tuple[tuple[int, ...], ...]) -> tuple[Mapping[int, float], Mapping[int, list[tuple[int, ...]]]]:
    """Returns the phrases of one token, and longer ones by their last token but one; once for all of a request."""
    by_token: dict[int, list[tuple[int, ...]]] = {}
    for phrase in phrases:
        if len(phrase) > 1:
            by_token.setdefault(phrase[-2], []).append(phrase)
    return {phrase[0]: BAN for phrase in phrases if len(phrase) == 1}, by_token


def steer(
    step: Step, row: int, factors: Mapping[int, float], num_needed: int, drawn_to: int = -1, part: float = 0.0
) -> None:
    """Changes a row of a step.

    Args:
        step: with the row.
        row: of it.
        factors: what the logits of tokens are divided by, or multiplied with if they are negative: 1 or more; or `BAN`.
        num_needed: so many of the row's best tokens are its best ones afterwards; the others may be any.
        drawn_to: the token that then gets `part` of all probability, and its share of the rest; only its own logit
            changes for that (CTranslate2's `prefix_bias_beta`). -1 for none, and always -1 for a step without
            log-probabilities.
        part: of all probability, 0 or more, less than 1.
    """
    own, top, exp = step.logits[row], step.top_ids[row], math.exp
    logit, num_best = own.item, len(top)
    # The logarithm of the row's sum; of an infinite one, nothing that changes is a part.
    total = total_before = logit(top[0]) - step.top_log_probs[row][0] if step.has_log_probs else math.inf
    least, left = logit(top[-1]), 1.0  # of the sum
    for token, by in factors.items():
        before = logit(token)
        after = before / by if before > 0 else before * by
        if not after > BANNED:  # as NaN is not
            after = BANNED
        own[token] = after
        left += exp(after - total) - exp(before - total)
    is_sorted = factors.keys().isdisjoint(top)
    if not is_sorted:
        # A token that is no worse than the last of the best was is still better than all others.
        kept = [token for token in top if token not in factors or logit(token) >= least]
        if len(kept) < num_needed:
            top = [*kept, *_best_beside(own, kept, num_best - len(kept))]
    if left < _LEAST_LEFT:
        highest = max(map(logit, top))
        total, left = highest, float(np.exp(own - highest).sum())
    if drawn_to >= 0:
        own[drawn_to] = total + math.log(exp(logit(drawn_to) - total) + left * part / (1 - part))
        left /= 1 - part
        top, is_sorted = [*{*top, drawn_to}], False
    if not is_sorted:
        total = total + math.log(left) if step.has_log_probs else 0.0
        ranked = sorted([(-logit(token), token) for token in top])[:num_best]
        step.top_ids[row] = [token for _, token in ranked]
        step.top_log_probs[row] = [-negated - total for negated, _ in ranked]
    elif step.has_log_probs:
        shift = total + math.log(left) - total_before
        step.top_log_probs[row] = [log_prob - shift for log_prob in step.top_log_probs[row]]


def _best_beside(values: NDArray[np.float32], tokens: Sequence[int], number: int) -> list[int]:
    """Returns the best tokens that are not among the given ones, best first, and of equals the lower id first.

    One is missing mostly. To find it by sorting would take ten times as long.

    Args:
        values: of each token, [V]; they are hidden for a while, and come back.
        tokens: which are left out.
        number: of tokens; at least as many others have finite values.
    """
    hidden: dict[int, float] = {}
    for token in tokens:
        hidden[token] = values.item(token)
        values[token] = -math.inf
    for _ in range(number):
        token = int(values.argmax())
        hidden[token] = values.item(token)
        values[token] = -math.inf
    for token, value in hidden.items():
        values[token] = value
    return [*hidden][len(tokens) :]


def log_probs_of(step: Step, wanted: Iterable[tuple[int, int]]) -> list[float]:
    """Returns the log-probability of each token that is wanted, given with its row.

    A step has the sum over the vocabulary already: what its best token's log-probability is less than its logit. To add
    it up again would take a hundred times as long.
    """
    logit, ids, log_probs = step.logits.item, step.top_ids, step.top_log_probs
    return [logit(row, token) - logit(row, ids[row][0]) + log_probs[row][0] for row, token in wanted]
