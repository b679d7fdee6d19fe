"""What options do to the logits of a step: penalties, bans and a bias, with the rules of CTranslate2 4.

They look at whole rows of logits. A step returns only the best tokens, so an engine asks for the rows of the sentences
that need them, after the step, and their neighbours take the step as it is.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from server.decoding.options import DecodingOptions

BANNED = np.finfo(np.float32).min  # the logit of a token that is banned; finite, so that beams can be compared
_BLOCK = 32  # tokens; half, and the best ones are found as fast; twice, and it takes a third longer


class Steering:
    """Changes the logits of one sentence's beams.

    Args:
        options: its own.
        eos_id: ends a translation.
    """

    def __init__(self, options: DecodingOptions, eos_id: int) -> None:
        self._options = options
        self._eos_id = eos_id
        self._never = [phrase[0] for phrase in options.suppressed if len(phrase) == 1]
        self._by_token: dict[int, list[tuple[int, ...]]] = {}  # longer phrases, by their last token but one
        for phrase in options.suppressed:
            if len(phrase) > 1:
                self._by_token.setdefault(phrase[-2], []).append(phrase)

    def steer(self, logits: NDArray[np.float32], written: Sequence[list[int]]) -> None:
        """Changes the logits in place: penalties first, then bans, then the bias to a prefix.

        Args:
            logits: [beams, V].
            written: the ids of each beam, without the forced prefix.
        """
        options = self._options
        prefix = list(options.forced_prefix)
        for row, own in zip(logits, written, strict=True):
            ids = prefix + own
            if options.repetition_penalty != 1 and ids:
                seen = list(set(ids))
                values = row[seen]
                row[seen] = np.where(
                    values < 0, values * options.repetition_penalty, values / options.repetition_penalty
                )
            if len(own) < options.min_output_tokens:
                row[self._eos_id] = BANNED
            if banned := [*self._never, *self._ends_of_phrases(ids), *self._ends_of_ngrams(ids)]:
                row[banned] = BANNED
            num_own, given = len(own), options.target_prefix
            if options.prefix_bias_beta > 0 and num_own < len(given) and tuple(own) == given[:num_own]:
                _draw_to(row, given[num_own], options.prefix_bias_beta)

    def _ends_of_phrases(self, ids: list[int]) -> Iterator[int]:
        for phrase in self._by_token.get(ids[-1], ()) if ids else ():
            if ids[1 - len(phrase) :] == list(phrase[:-1]):
                yield phrase[-1]

    def _ends_of_ngrams(self, ids: list[int]) -> Iterator[int]:
        """Yields the tokens with which the tail would be an n-gram that is there already."""
        size = self._options.no_repeat_ngram_size
        if size == 1:
            yield from ids
        elif 1 < size <= len(ids):
            tail = ids[1 - size :]
            for end in range(size - 1, len(ids)):
                if ids[end - 1] == tail[-1] and ids[end - size + 1 : end] == tail:
                    yield ids[end]


def _draw_to(logits: NDArray[np.float32], token: int, part: float) -> None:
    """Makes log-probabilities of a row's logits [V], in their place, and draws them to a token, as CTranslate2 does.

    Args:
        logits: of which log-probabilities are a row, too.
        token: that gets this part of all probability, beside its share of the rest.
        part: over 0, less than 1.
    """
    log_softmax(logits[np.newaxis])
    logits += np.float32(np.log1p(-part))
    logits[token] = np.logaddexp(logits[token], np.float32(np.log(part)))


def log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the log-probabilities of logits, [n, V], made in their place."""
    logits -= logits.max(axis=1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logits


def best_of(values: NDArray[np.float32], top_k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Returns the best tokens of each row [n, V], best first, at most `top_k`, and their values.

    The k best are in the k blocks whose best are best. To look for them in whole rows would take three times as long.
    """
    if top_k == 1:
        best = values.argmax(axis=1)[:, np.newaxis]
        return best, np.take_along_axis(values, best, axis=1)
    num_rows, size = values.shape
    num_blocks = size // _BLOCK
    top_k, num_best = min(top_k, size), min(top_k, num_blocks)
    ids = np.broadcast_to(np.arange(num_blocks * _BLOCK, size), (num_rows, size - num_blocks * _BLOCK))
    if num_best:
        # A block is every n-th token, because numpy compares runs of rows five times as fast as within them.
        best_of_block = values[:, : num_blocks * _BLOCK].reshape(num_rows, _BLOCK, num_blocks).max(axis=1)
        blocks = np.argpartition(best_of_block, -num_best, axis=1)[:, -num_best:]
        within = (blocks[:, :, np.newaxis] + num_blocks * np.arange(_BLOCK)).reshape(num_rows, -1)
        ids = np.concatenate([within, ids], axis=1)
    own = np.take_along_axis(values, ids, axis=1)
    places = np.argpartition(own, -top_k, axis=1)[:, -top_k:]
    ids = np.sort(np.take_along_axis(ids, places, axis=1), axis=1)
    best = np.take_along_axis(values, ids, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(best, order, axis=1)
