"""What options do to the logits of a step: penalties, bans and a bias, with the rules of CTranslate2 4.

They change few tokens of a row. So a row's sum over the vocabulary is not added up again: it changes by what these
tokens change. And the best tokens that the step has returned remain the best, unless one of them is changed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from server.decoding.options import DecodingOptions

BAN = math.nan  # in the place of a factor, for a token that is banned
BANNED = np.float32(-1e30)  # its logit; finite, so that beams can be compared, also when divided by a temperature
# Of a row's probability that must be left for its sum to be known by subtraction. Half, and scores lose twice as much
# of their precision; twice, and more rows are added up again.
_LEAST_LEFT = 0.25
_BLOCK = 32  # tokens; half, and the best ones are found as fast; twice, and it takes a third longer


class Step(NamedTuple):
    """What a decoder has returned, which options change in place.

    Attributes:
        logits: [B, V].
        top_ids: the best tokens, [B, k], best first.
        top_log_probs: their log-probabilities, [B, k].
    """

    logits: NDArray[np.float32]
    top_ids: NDArray[np.int64]
    top_log_probs: NDArray[np.float32]


class Steering:
    """Says which logits of one sentence's beams change.

    Args:
        options: its own.
        eos_id: ends a translation.
    """

    def __init__(self, options: DecodingOptions, eos_id: int) -> None:
        self._options = options
        self._eos_id = eos_id
        self._never = {phrase[0]: BAN for phrase in options.suppressed if len(phrase) == 1}
        self._by_token: dict[int, list[tuple[int, ...]]] = {}  # longer phrases, by their last token but one
        for phrase in options.suppressed:
            if len(phrase) > 1:
                self._by_token.setdefault(phrase[-2], []).append(phrase)

    def factors(self, written: Sequence[list[int]]) -> dict[int, dict[int, float]]:
        """Returns for each beam the tokens whose logits change; a beam without any is left out.

        Args:
            written: the ids of each beam, without the forced prefix.

        Returns:
            What each token's logit is divided by, or multiplied with if it is negative; or `BAN`.
        """
        options = self._options
        factors: dict[int, dict[int, float]] = {}
        for beam, own in enumerate(written):
            ids = [*options.forced_prefix, *own]
            changed = dict.fromkeys(ids, options.repetition_penalty) if options.repetition_penalty != 1 else {}
            if len(own) < options.min_output_tokens:
                changed[self._eos_id] = BAN
            if self._never:
                changed |= self._never
            if ids and ids[-1] in self._by_token:
                changed |= dict.fromkeys(self._ends_of_phrases(ids), BAN)
            if options.no_repeat_ngram_size > 0:
                changed |= dict.fromkeys(self._ends_of_ngrams(ids), BAN)
            if changed:
                factors[beam] = changed
        return factors

    def drawn(self, written: Sequence[list[int]]) -> dict[int, tuple[int, float]]:
        """Returns for each beam that follows the target prefix the next token of it, and the part that `draw_to` takes.

        Args:
            written: as for `factors`.
        """
        given, part = self._options.target_prefix, self._options.prefix_bias_beta
        return {
            beam: (given[len(own)], part)
            for beam, own in enumerate(written if part > 0 else ())
            if len(own) < len(given) and tuple(own) == given[: len(own)]
        }

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


def steer(step: Step, factors: Mapping[int, dict[int, float]]) -> None:
    """Changes a step as if the network had said so.

    Args:
        factors: of some rows what `Steering.factors` returns, at least one token.
    """
    logits, top_ids, top_log_probs = step
    rows, best = [*factors], top_ids.tolist()
    least = {row: logits.item(row, best[row][-1]) for row in rows}
    totals = logits[rows, top_ids[rows, 0]] - top_log_probs[rows, 0]  # logarithms of the rows' sums
    lengths = [len(own) for own in factors.values()]
    ids = np.fromiter(chain.from_iterable(factors.values()), np.int64)
    by = np.fromiter(chain.from_iterable(map(dict.values, factors.values())), np.float32)
    at = np.array(rows).repeat(lengths), ids
    before = logits[at]
    after = np.fmax(np.minimum(before * by, before / by), BANNED)  # which is no ban's NaN
    logits[at] = after
    gone, come = np.exp(np.array([before, after]) - totals.repeat(lengths))
    left = 1 + np.add.reduceat(come - gone, [0, *accumulate(lengths[:-1])])
    grown = np.log(np.maximum(left, _LEAST_LEFT))
    top_log_probs[rows] -= grown[:, np.newaxis]
    for row, total, is_known in zip(rows, totals + grown, (left >= _LEAST_LEFT).tolist(), strict=True):
        top, own = best[row], logits[row]
        if is_known and factors[row].keys().isdisjoint(top):
            continue
        if min(map(own.item, top)) < least[row]:  # else what was better than all others still is
            top = best_of(own, len(top)).tolist()
        top.sort(key=own.item, reverse=True)
        top_ids[row] = top
        highest = own.item(top[0])
        top_log_probs[row] = own[top] - (total if is_known else highest + np.log(np.exp(own - highest).sum()))


def draw_to(step: Step, drawn: Mapping[int, tuple[int, float]]) -> None:
    """Draws some rows to one token each: CTranslate2's `prefix_bias_beta`.

    The token gets a part of all probability beside its share of the rest: so of all logits, its own alone changes.

    Args:
        drawn: of some rows the token, and the part: over 0, less than 1.
    """
    logits, top_ids, top_log_probs = step
    for row, (token, part) in drawn.items():
        own, rest = logits[row], np.log1p(-part)
        total = own[top_ids[row, 0]] - top_log_probs[row, 0]
        own[token] = np.logaddexp(own[token], total + np.log(part) - rest)
        top_ids[row] = best_of(own, top_ids.shape[1])
        top_log_probs[row] = own[top_ids[row]] - (total - rest)


def log_probs_of(step: Step, rows: Sequence[int], ids: Sequence[int]) -> list[float]:
    """Returns the log-probability of one token in each of some rows, both [n].

    A step has the sum over the vocabulary already: what its best token's log-probability is less than its logit. To add
    it up again would take a hundred times as long.
    """
    logits, top_ids, top_log_probs = step
    of = np.array(rows)
    log_probs: list[float] = (logits[of, ids] - logits[of, top_ids[of, 0]] + top_log_probs[of, 0]).tolist()
    return log_probs


def best_of(values: NDArray[np.float32], top_k: int) -> NDArray[np.int64]:
    """Returns the best tokens, best first, and of equals the lower id first.

    No token is among them that is worse than the k-th best of the blocks' best. To sort all would take ten times as
    long.

    Args:
        values: of each token, [V].
        top_k: how many, 1 to V.
    """
    if top_k == 1:
        return np.array([values.argmax()])
    num_blocks = len(values) // _BLOCK
    # A block is every n-th token, because numpy compares runs of rows five times as fast as within them.
    blocks = values[: num_blocks * _BLOCK].reshape(_BLOCK, num_blocks).max(axis=0)
    least = np.partition(blocks if top_k <= num_blocks else values, -top_k)[-top_k]
    ids = (values >= least).nonzero()[0]
    best: NDArray[np.int64] = ids[np.argsort(-values[ids], kind="stable")[:top_k]]
    return best
