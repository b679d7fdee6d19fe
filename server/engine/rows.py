"""The inputs of the next step, row by row. They are kept from step to step, because gathering them takes longer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.engine.sentence import Sentence
from server.network import RowMoves, StepInputs


class Rows:
    """The inputs of one batch. `RowPlan` says which rows are in use: 0 to num_rows - 1."""

    def __init__(self, max_rows: int) -> None:
        self._last_ids = np.zeros(max_rows, np.int64)
        self._past_lengths = np.zeros(max_rows, np.int32)
        self._source_lengths = np.zeros(max_rows, np.int32)
        self._all: list[NDArray[Any]] = [self._last_ids, self._past_lengths, self._source_lengths]

    def admit(self, sentences: list[Sentence]) -> None:
        """Notes sentences that have just been placed, each in one row."""
        for sentence in sentences:
            (row,) = sentence.rows
            (self._last_ids[row],) = sentence.search.last_ids
            self._past_lengths[row] = 0
            self._source_lengths[row] = len(sentence.source_ids)

    def move(self, moves: RowMoves) -> None:
        """Copies rows."""
        if moves.to:
            for array in self._all:
                array[moves.to] = array[moves.from_]

    def inputs(self, sentences: list[Sentence], num_rows: int, *, is_alone: bool) -> StepInputs:
        """Returns copies of the next step's inputs."""
        return StepInputs(
            self._last_ids[:num_rows].copy(),
            self._past_lengths[:num_rows].copy(),
            self._source_lengths[:num_rows].copy(),
            top_k=max(sentence.search.top_k for sentence in sentences),
            with_log_probs=any(each.options.needs_log_probs or each.options.is_steered for each in sentences),
            is_alone=is_alone,
        )

    def advance(self, best_ids: NDArray[np.int64]) -> None:
        """Notes a step of the first rows, int64 [rows]: each goes on with its best token, as in greedy search."""
        self._last_ids[: len(best_ids)] = best_ids
        self._past_lengths[: len(best_ids)] += 1

    def feed(self, sentence: Sentence) -> None:
        """Lets the rows of a sentence go on with the tokens that its search has chosen."""
        self._last_ids[sentence.rows] = sentence.search.last_ids
