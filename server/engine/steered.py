"""Sentences whose search asks for more of a step than its best tokens, which their neighbours go by."""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.decoding.steering import best_of, log_softmax
from server.engine.sentence import Sentence
from server.network import Decoder


def advance_steered(
    sentences: Sequence[Sentence], top_ids: NDArray[np.int64], top_log_probs: NDArray[np.float32], decoder: Decoder
) -> dict[Sentence, list[int]]:
    """Gives each search its tokens, and the logits or log-probabilities that it wants.

    Args:
        sentences: of the batch.
        top_ids: what `Decoder.step` has returned, of all rows.
        top_log_probs: likewise.
        decoder: that has taken the step.

    Returns:
        For each sentence what `BeamSearch.advance` returns.
    """
    whole = [sentence for sentence in sentences if sentence.search.is_steered]
    others = [sentence for sentence in sentences if not sentence.search.is_steered]
    parents: dict[Sentence, list[int]] = {}
    if others:
        wanted = [(sentence.rows[beam], token) for sentence in others for beam, token in sentence.search.wanted]
        log_probs = iter(decoder.log_probs(*zip(*wanted, strict=True)).tolist())
        for sentence in others:
            search, top = sentence.search, (top_ids[sentence.rows].tolist(), top_log_probs[sentence.rows].tolist())
            parents[sentence] = search.advance(*top, list(itertools.islice(log_probs, len(search.wanted))))
    if whole:
        logits = decoder.logits([row for sentence in whole for row in sentence.rows])
        ends = itertools.accumulate(len(sentence.rows) for sentence in whole)
        own = {sentence: slice(end - len(sentence.rows), end) for sentence, end in zip(whole, ends, strict=True)}
        for sentence, rows in own.items():
            sentence.search.steer(logits[rows])
        # All at once, because numpy takes nearly as long for one row as for some.
        all_log_probs = log_softmax(logits)
        best_ids, best = best_of(all_log_probs, max(sentence.search.top_k for sentence in whole))
        for sentence, rows in own.items():
            parents[sentence] = sentence.search.advance_steered(all_log_probs[rows], best_ids[rows], best[rows])
    return parents
