"""Which rows of a batch share which slot of the cross-attention caches: the beams of a sentence need it only once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.bundle.graphs import SLOT_ROWS


class SlotTable:
    """The slots 0, 1, ... of the sentences in a batch; once each has one row, as in greedy search, they are rows.

    Between two steps rows change their sentence (`share`), `tidy` lays the slots out, and new sentences are admitted.
    """

    def __init__(self) -> None:
        self._rows: list[list[int]] = []  # of each slot
        self._sentences: list[int] = []  # of each slot the sentence in it, by a number of its own
        self._slot_of: dict[int, int] = {}  # by row
        self._num_admitted = 0
        self._array: NDArray[np.int64] | None = None  # None while it is not that of `_rows`

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def num_rows(self) -> int:
        """Rows that have a slot."""
        return len(self._slot_of)

    @property
    def are_shared(self) -> bool:
        """Whether any row shares its slot; if none does, slots are rows when it is tidy."""
        return len(self._rows) < len(self._slot_of)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows of each slot, [slots, SLOT_ROWS], when it is tidy; where there are fewer, the first one again."""
        if self._array is None:
            filled = [rows + rows[:1] * (SLOT_ROWS - len(rows)) for rows in self._rows]
            self._array = np.array(filled, np.int64).reshape(-1, SLOT_ROWS)
        return self._array

    def slots_of(self, rows: Sequence[int]) -> NDArray[np.int64]:
        """Returns the slot of each row, [rows]."""
        return np.array([self._slot_of[row] for row in rows], np.int64)

    def admit(self, row: int) -> int:
        """Gives a free row, that of a sentence of its own, the next slot; returns it."""
        self._num_admitted += 1
        self._rows.append([])
        self._sentences.append(self._num_admitted)
        self._join(row, len(self._rows) - 1)
        return len(self._rows) - 1

    def share(self, to: int, from_: int) -> None:
        """Makes a row one more of another one's sentence."""
        if self._slot_of.get(to) != self._slot_of[from_]:
            self._leave(to)
            self._join(to, self._slot_of[from_])

    def tidy(self, num_rows: int) -> tuple[list[int], list[int]]:
        """Frees all rows from `num_rows` on, spreads rows that are too many for a slot, and closes gaps.

        Returns:
            The copies to make, slots `to` and `from_`; all are to be read before any is written.
        """
        for row in [row for row in self._slot_of if row >= num_rows]:
            self._leave(row)
        if self._array is not None:  # nothing has changed since it was made
            return [], []
        contents = self._spread()
        order = self._order_without_gaps()
        self._renumber(order)
        to = [slot for slot, old in enumerate(order) if slot != contents[old]]
        return to, [contents[order[slot]] for slot in to]

    def _spread(self) -> list[int]:
        """Moves rows from slots with too many to siblings; returns of each slot the one that has its contents yet."""
        contents = list(range(len(self._rows)))
        for slot in range(len(self._rows)):
            while len(self._rows[slot]) > SLOT_ROWS:
                self._move_to_sibling(self._rows[slot][-1], contents)
        return contents

    def _order_without_gaps(self) -> list[int]:
        """Returns the slots in use, in their new order.

        Once each has one row, slot i is row i's. Else the last ones fill the gaps, so that few are copied.
        """
        used = [slot for slot, rows in enumerate(self._rows) if rows]
        if len(used) == self.num_rows:
            return [self._slot_of[row] for row in sorted(self._slot_of)]
        behind = [slot for slot in used if slot >= len(used)]
        return [slot if self._rows[slot] else behind.pop() for slot in range(len(used))]

    def _renumber(self, order: list[int]) -> None:
        self._rows = [self._rows[slot] for slot in order]
        self._sentences = [self._sentences[slot] for slot in order]
        moved = [slot for slot, old in enumerate(order) if slot != old]
        self._slot_of.update((row, slot) for slot in moved for row in self._rows[slot])

    def _move_to_sibling(self, row: int, contents: list[int]) -> None:
        """Moves a row to another slot of its sentence, a new one if none has room."""
        slot = self._slot_of[row]
        sentence = self._sentences[slot]
        for sibling, rows in enumerate(self._rows):
            if self._sentences[sibling] == sentence and len(rows) < SLOT_ROWS:
                break
        else:
            sibling = len(self._rows)
            self._rows.append([])
            self._sentences.append(sentence)
            contents.append(contents[slot])
        self._leave(row)
        self._join(row, sibling)

    def _join(self, row: int, slot: int) -> None:
        self._rows[slot].append(row)
        self._slot_of[row] = slot
        self._array = None

    def _leave(self, row: int) -> None:
        if row in self._slot_of:
            self._rows[self._slot_of.pop(row)].remove(row)
            self._array = None
