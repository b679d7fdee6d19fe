"""What finished sentences have attended to: how they are aligned, and what their coverage adds to their scores."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from server.decoding.coverage import coverage
from server.engine.sentence import Sentence
from server.network import Decoder

# Hypotheses of one run for coverage. Half, and it takes longer; twice, and the longest take 40 MB more for a while.
_MOST_HYPOTHESES = 16


def needs_attention(sentence: Sentence) -> bool:
    """Whether a sentence has to be aligned when it is finished."""
    return sentence.options.with_alignment or sentence.options.coverage_penalty > 0


def align(sentences: Sequence[Sentence], decoder: Decoder) -> None:
    """Adds to the scores of hypotheses what their coverage is worth, then notes the attention of the best one.

    Args:
        sentences: finished ones that need it, with the rows that the last step was taken with.
        decoder: of their batch.
    """
    covered = [sentence for sentence in sentences if sentence.options.coverage_penalty > 0]
    targets = [
        (sentence, sentence.search.target_ids(hypothesis, with_eos=True))
        for sentence in covered
        for hypothesis in sentence.search.finished
    ]
    weights: list[NDArray[np.float32]] = []
    for begin in range(0, len(targets), _MOST_HYPOTHESES):
        weights += _attend(targets[begin : begin + _MOST_HYPOTHESES], decoder)
    values = map(coverage, weights)
    for sentence in covered:
        share, search = sentence.options.coverage_penalty, sentence.search
        search.finished = [replace(each, score=each.score + share * next(values)) for each in search.finished]
    aligned = [sentence for sentence in sentences if sentence.options.with_alignment]
    best = [(sentence, sentence.search.target_ids(sentence.search.best()[0])) for sentence in aligned]
    for sentence, attention in zip(aligned, _attend(best, decoder) if best else (), strict=True):
        sentence.attention = attention[len(sentence.options.forced_prefix) :]


def _attend(targets: Sequence[tuple[Sentence, list[int]]], decoder: Decoder) -> list[NDArray[np.float32]]:
    """Returns what each target attends to, [T - 1, S], for targets that begin with bos."""
    target_ids = np.zeros((len(targets), max(len(ids) for _, ids in targets)), np.int64)  # what pads a row is ignored
    for row, (_, ids) in zip(target_ids, targets, strict=True):
        row[: len(ids)] = ids
    lengths = np.array([len(sentence.source_ids) for sentence, _ in targets], np.int32)
    attention = decoder.align([sentence.rows[0] for sentence, _ in targets], target_ids, lengths)
    return [
        weights[: len(ids) - 1, : len(sentence.source_ids)].copy()
        for weights, (sentence, ids) in zip(attention, targets, strict=True)
    ]
