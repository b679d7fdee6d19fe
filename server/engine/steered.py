"""Sentences whose search asks for more of a step than its best tokens, which their neighbours go by."""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.decoding.steering import draw_to, log_probs_of, steer
from server.engine.sentence import Sentence
from server.network import Decoder


def advance_steered(
    sentences: Sequence[Sentence], top_ids: NDArray[np.int64], top_log_probs: NDArray[np.float32], decoder: Decoder
) -> dict[Sentence, list[int]]:
    """Gives each search its tokens, after what its options change, and the log-probabilities and logits that it wants.

    Args:
        sentences: of the batch.
        top_ids: what `Decoder.step` has returned, of all rows; of the rows of these sentences changed in place.
        top_log_probs: likewise.
        decoder: that has taken the step.

    Returns:
        For each sentence what `BeamSearch.advance` returns.
    """
    logits = decoder.logits()
    steered = [each for each in sentences if each.search.is_steered]
    factors = {row: own for each in steered for row, own in zip(each.rows, each.search.factors(), strict=True) if own}
    if factors:
        steer(logits, top_ids, top_log_probs, factors)
    biased = [each for each in steered if each.options.prefix_bias_beta > 0]
    drawn = {row: own for each in biased for row, own in zip(each.rows, each.search.drawn(), strict=True) if own}
    draw_to(logits, top_ids, top_log_probs, drawn)
    wanted = [(sentence.rows[beam], token) for sentence in sentences for beam, token in sentence.search.wanted]
    of_wanted = iter(log_probs_of(logits, top_ids, top_log_probs, *zip(*wanted, strict=True)) if wanted else ())
    ids, log_probs = top_ids.tolist(), top_log_probs.tolist()
    parents: dict[Sentence, list[int]] = {}
    for sentence in sentences:
        search, rows = sentence.search, sentence.rows
        own = list(itertools.islice(of_wanted, len(search.wanted)))
        tops = [ids[row] for row in rows], [log_probs[row] for row in rows]
        parents[sentence] = search.advance(*tops, own, [logits[row] for row in rows])
    return parents
