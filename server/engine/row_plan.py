"""Which sentences run in a batch, which rows they have, and what these rows are fed: iteration-level scheduling.

Between any two steps, finished, cancelled and expired sentences leave, and waiting sentences enter. Source of the
idea: Orca (OSDI 2022).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.engine.limits import Footprint
from server.engine.sentence import Sentence
from server.network import RowMoves, StepInputs

_IDLE = 0, 0, 1, 0  # of a row in a gap: the token, past length and source length that it is fed; and not in use


class RowPlan:
    """The running sentences of a batch and their rows, which end before `end`. Only `remove` leaves gaps.

    Attributes:
        num_rows: rows in use.
        end: number of rows that the next step is fed, gaps included. A row in a gap is fed as one that has just begun,
            and nobody reads what the step returns for it.
        footprint: of the running sentences, with the beams that they will still grow.
        parents: of each beam search that took tokens since `arrange`, the beam that each of its beams extends.
    """

    def __init__(self, max_rows: int) -> None:
        self.running: list[Sentence] = []
        self.num_rows = self.end = 0
        self.footprint = Footprint()
        self.parents: dict[Sentence, list[int]] = {}
        # What rows are fed is kept from step to step, because gathering it takes longer.
        self._last_ids = np.zeros(max_rows, np.int64)
        self._past_lengths, self._source_lengths = np.zeros((2, max_rows), np.int32)
        self._is_used = np.zeros(max_rows, np.int32)
        self._fed: list[NDArray[Any]] = [self._last_ids, self._past_lengths, self._source_lengths, self._is_used]

    def add(self, sentences: list[Sentence]) -> None:
        """Adds sentences. They have no row until `place`."""
        self.running.extend(sentences)
        for sentence in sentences:
            self.footprint += sentence.footprint

    def longest(self) -> tuple[int, int]:
        """Returns the most positions that a row has of its target, and of its source; 0 and 0 without rows."""
        past_lengths, source_lengths = (array[: self.end] for array in self._fed[1:3])
        return int(past_lengths.max(initial=0)), int(source_lengths.max(initial=0))

    def place(self, sentences: list[Sentence]) -> int:
        """Gives each encoded sentence its first row, behind all others; returns the first of these rows."""
        first_row = self.end
        for row, sentence in enumerate(sentences, start=first_row):
            sentence.rows = [row]
            (self._last_ids[row],) = sentence.search.last_ids
            self._past_lengths[row] = 0
            self._source_lengths[row] = len(sentence.source_ids)
            self._is_used[row] = 1
        self.num_rows += len(sentences)
        self.end += len(sentences)
        return first_row

    def remove(self, sentences: list[Sentence]) -> list[Sentence]:
        """Takes sentences out of the batch, and returns those that were in it. The next `arrange` closes the gaps."""
        gone = set(sentences)
        removed = [sentence for sentence in self.running if sentence in gone]
        self.running = [sentence for sentence in self.running if sentence not in gone]
        freed: list[int] = []
        for sentence in removed:
            self.footprint -= sentence.footprint
            freed += sentence.rows
            sentence.rows = []
        self.num_rows -= len(freed)
        for array, idle in zip(self._fed, _IDLE, strict=True):
            array[freed] = idle
        if not self.running:
            self.end, self.parents = 0, {}
        return removed

    def inputs(self, *, is_alone: bool) -> StepInputs:
        """Returns copies of what the next step is fed."""
        last_ids, past_lengths, source_lengths = (array[: self.end].copy() for array in self._fed[:3])
        return StepInputs(
            last_ids,
            past_lengths,
            source_lengths,
            top_k=max(sentence.search.top_k for sentence in self.running),
            with_log_probs=any(sentence.needs_log_probs for sentence in self.running),
            is_alone=is_alone,
        )

    def advance(
        self, top_ids: list[list[int]], top_log_probs: list[list[float]], wanted: Mapping[Sentence, list[float]]
    ) -> tuple[list[Sentence], dict[Sentence, Exception]]:
        """Gives each search the tokens of a step; returns the finished sentences, and those whose searches have failed.

        Args:
            top_ids: of each row up to `end`, the best first.
            top_log_probs: of these.
            wanted: of each search that names tokens, their log-probabilities.
        """
        # Right for greedy rows; `arrange` sets those of beams.
        self._last_ids[: len(top_ids)] = [ids[0] for ids in top_ids]
        self._past_lengths += self._is_used
        finished: list[Sentence] = []
        failed: dict[Sentence, Exception] = {}
        for sentence in self.running:
            search, rows = sentence.search, sentence.rows
            try:
                if search.is_greedy:
                    if not search.advance_greedily(top_ids[rows[0]][0], top_log_probs[rows[0]][0]):
                        finished.append(sentence)
                elif parents := search.advance(
                    [top_ids[row] for row in rows], [top_log_probs[row] for row in rows], wanted.get(sentence, ())
                ):
                    self.parents[sentence] = parents
                else:
                    finished.append(sentence)
            except Exception as error:  # noqa: BLE001  # the neighbours go on
                failed[sentence] = error
        return finished, failed

    def arrange(self) -> RowMoves:
        """Lays out the rows of the next step without gaps, and moves as few as possible.

        A beam stays in the row of the beam that it extends, if that row is within the new end and no other beam has
        claimed it. Any other beam moves to a free row of its own sentence, where only the last positions differ, or, if
        there is none, to a row that another sentence has left.

        Returns:
            The copies to make in caches; `Sentence.rows` are the new ones already.
        """
        sources = {s: [s.rows[beam] for beam in beams] for s, beams in self.parents.items() if s.rows}
        num_rows = self.num_rows + sum(len(rows) - len(s.rows) for s, rows in sources.items())
        # A greedy sentence has no entry, nor has one whose last step failed: it moves only if it lies behind the end.
        behind_end = (s for s in self.running if s not in sources and max(s.rows, default=0) >= num_rows)
        sources |= {sentence: list(sentence.rows) for sentence in behind_end}
        self.num_rows = self.end = num_rows
        moves = self._settle(sources)
        for array in self._fed if moves.to else ():
            array[moves.to] = array[moves.from_]
        for sentence in self.parents:
            if sentence.rows:
                self._last_ids[sentence.rows] = sentence.search.last_ids
        self.parents = {}
        return moves

    def _settle(self, sources: dict[Sentence, list[int]]) -> RowMoves:
        """Gives each beam of these sentences its next row; `sources` has for each beam the row that it extends."""
        moves, old_rows = RowMoves(), {sentence: sentence.rows for sentence in sources}
        claimed: set[int] = set()
        homeless: list[tuple[Sentence, int, int]] = []
        for sentence, rows in sources.items():
            sentence.rows = rows
            for beam, source in enumerate(rows):
                if source in claimed or source >= self.num_rows:
                    homeless.append((sentence, beam, source))
                claimed.add(source)
        if not homeless:
            return moves
        free = set(range(self.num_rows)).difference(*(sentence.rows for sentence in self.running))
        for is_own in (True, False):  # rows of its own sentence first, before beams of others take them
            left = []
            for sentence, beam, source in homeless:
                old = old_rows[sentence]
                row = next((row for row in (old if is_own else free) if row in free), None)
                if row is None:
                    left.append((sentence, beam, source))
                    continue
                free.remove(row)
                sentence.rows[beam] = row
                moves.add(row, source, sentence.search.num_common(old.index(row), old.index(source)) if is_own else 0)
            homeless = left
        return moves
