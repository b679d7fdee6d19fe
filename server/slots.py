"""Which rows of a batch share which slot of the cross-attention caches: the beams of a sentence need it only once."""

import numpy as np
from numpy.typing import NDArray

SLOT_ROWS = 4  # most rows that share a slot; a wider beam has several


class SlotTable:
    """The slots 0, 1, ... of the sentences in a batch; with greedy search slot i is that of row i alone."""

    def __init__(self) -> None:
        self._rows: list[list[int]] = []  # of each slot; empty ones are left by rows that leave, until `tidy`
        self._sentences: list[int] = []  # of each slot
        self._slot_of: dict[int, int] = {}  # by row
        self._num_admitted = 0
        self._array: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def num_rows(self) -> int:
        """Rows that have a slot."""
        return len(self._slot_of)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows of each slot, [slots, SLOT_ROWS]; where there are fewer, the first one again."""
        if self._array is None:
            filled = [rows + rows[:1] * (SLOT_ROWS - len(rows)) for rows in self._rows]
            self._array = np.array(filled, np.int64).reshape(-1, SLOT_ROWS)
        return self._array

    def admit(self, row: int) -> int:
        """Gives a free row, that of a sentence of its own, a slot; returns it."""
        self._leave(row)
        self._num_admitted += 1
        return self._open(row, self._num_admitted)

    def share(self, to: int, from_: int) -> int | None:
        """Makes a row one more of another one's sentence.

        Returns:
            None if one of the sentence's slots has room for it; else a new slot, to which the other row's is to be
            copied.
        """
        slot = self._slot_of[from_]
        if self._slot_of.get(to) == slot:
            return None
        self._leave(to)
        sentence = self._sentences[slot]
        for sibling, rows in enumerate(self._rows):
            if self._sentences[sibling] == sentence and 0 < len(rows) < SLOT_ROWS:
                self._join(to, sibling)
                return None
        return self._open(to, sentence)

    def slot_of(self, row: int) -> int:
        """Returns the slot of a row in use."""
        return self._slot_of[row]

    def tidy(self, num_rows: int) -> list[tuple[int, int]]:
        """Frees all rows from `num_rows` on, and moves slots so that those in use have no gaps.

        Returns:
            The copies to make, (to, from); no slot is on both sides.
        """
        for row in [row for row in self._slot_of if row >= num_rows]:
            self._leave(row)
        num_slots = sum(map(bool, self._rows))
        gaps = [slot for slot, rows in enumerate(self._rows[:num_slots]) if not rows]
        moves = []
        for slot in range(num_slots, len(self._rows)):
            if rows := self._rows[slot]:
                to = gaps.pop(gaps.index(rows[0]) if rows[0] in gaps else 0)
                self._rows[to], self._sentences[to] = rows, self._sentences[slot]
                self._slot_of.update((row, to) for row in rows)
                moves.append((to, slot))
        del self._rows[num_slots:], self._sentences[num_slots:]
        return moves

    def _open(self, row: int, sentence: int) -> int:
        slot = next((slot for slot, rows in enumerate(self._rows) if not rows), len(self._rows))
        if slot == len(self._rows):
            self._rows.append([])
            self._sentences.append(sentence)
        self._sentences[slot] = sentence
        self._join(row, slot)
        return slot

    def _join(self, row: int, slot: int) -> None:
        self._rows[slot].append(row)
        self._slot_of[row] = slot
        self._array = None

    def _leave(self, row: int) -> None:
        if row in self._slot_of:
            self._rows[self._slot_of.pop(row)].remove(row)
            self._array = None
