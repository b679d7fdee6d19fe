"""What finished sentences have attended to: how they are aligned, and what their coverage adds to their scores."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from server.engine.sentence import Sentence
from server.network import Decoder

# Sentences that are aligned together. Half, and links cost a request a tenth more; twice that, and a sentence waits
# longer for no gain.
_ENOUGH = 8
_MOST_STEPS = 8  # that a sentence waits for others: half, and groups are smaller; twice that, and streams falter
# Hypotheses of one run. Half, and coverage takes longer; twice, and the longest take 40 MB more for a while.
_MOST_RUN = 16


def needs_attention(sentence: Sentence) -> bool:
    """Whether a sentence has to be aligned when it is finished."""
    return sentence.options.with_alignment or sentence.options.coverage_penalty > 0


class Group:
    """Finished sentences of a batch that wait to be aligned together: a run for one takes as long as for three."""

    def __init__(self) -> None:
        self.sentences: list[Sentence] = []
        self._num_steps = 0  # that the first one has waited

    def add(self, sentences: Sequence[Sentence], decoder: Decoder) -> None:
        """Adds sentences that need it, with the rows that the last step was taken with."""
        for sentence in sentences:
            sentence.source = decoder.keep(sentence.rows[0], len(sentence.source_ids))
        self.sentences += sentences

    def remove(self, sentences: Sequence[Sentence]) -> None:
        """Takes sentences out, if they are there."""
        gone = set(sentences)
        self.sentences = [sentence for sentence in self.sentences if sentence not in gone]

    def due(self, running: Sequence[Sentence], *, may_wait: bool) -> list[Sentence]:
        """Returns the sentences, or none if it is worth while to wait for running ones; to be asked once a step.

        They stay until `remove`, so that they are answered even if the lane hangs or dies while they are aligned.
        """
        self._num_steps += 1
        may_wait = may_wait and len(self.sentences) < _ENOUGH and self._num_steps < _MOST_STEPS
        if may_wait and any(map(needs_attention, running)):
            return []
        self._num_steps = 0
        return self.sentences


def align(sentences: Sequence[Sentence], decoder: Decoder) -> None:
    """Adds to the scores of hypotheses what their coverage is worth, then notes the attention of the best one."""
    asked = {
        sentence: (sentence.options.coverage_penalty > 0 and sentence.search.finished) or sentence.search.best()[:1]
        for sentence in sentences
    }
    targets = [(each, each.search.target_ids(one, with_eos=True)) for each, own in asked.items() for one in own]
    runs = [_attend(targets[begin : begin + _MOST_RUN], decoder) for begin in range(0, len(targets), _MOST_RUN)]
    weights = chain.from_iterable(runs)
    for sentence, own in asked.items():
        attention = {hypothesis.ids: next(weights) for hypothesis in own}
        share, search = sentence.options.coverage_penalty, sentence.search
        if share > 0:
            search.finished = [
                replace(each, score=each.score + share * coverage(attention[each.ids])) for each in search.finished
            ]
        if sentence.options.with_alignment:
            ids, start = search.best()[0].ids, len(sentence.options.forced_prefix)
            sentence.attention = attention[ids][start : start + len(ids)]


def coverage(attention: NDArray[np.float32]) -> float:
    """Returns the sum of log(min(attention, 1)) over the source, at most 0; a token that nothing attends to is none.

    With CTranslate2's `coverage_penalty` a translation loses as much for words of its source that it leaves out.
    Source of the idea: Wu et al., "Google's Neural Machine Translation System", 2016.

    Args:
        attention: [T, S], of each token of a translation, eos included, a distribution over the source.
    """
    covered = attention.sum(axis=0, dtype=np.float64)
    return float(np.log(np.minimum(covered[covered > 0], 1.0)).sum())


def _attend(targets: Sequence[tuple[Sentence, list[int]]], decoder: Decoder) -> list[NDArray[np.float32]]:
    """Returns what each target attends to, [T - 1, S], for targets that begin with bos."""
    target_ids = np.zeros((len(targets), max(len(ids) for _, ids in targets)), np.int64)  # what pads a row is ignored
    for row, (_, ids) in zip(target_ids, targets, strict=True):
        row[: len(ids)] = ids
    lengths = np.array([len(sentence.source_ids) for sentence, _ in targets], np.int32)
    attention = decoder.align([sentence.source for sentence, _ in targets], target_ids, lengths)
    return [
        weights[: len(ids) - 1, : len(sentence.source_ids)].copy()
        for weights, (sentence, ids) in zip(attention, targets, strict=True)
    ]
