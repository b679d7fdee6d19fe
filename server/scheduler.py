"""Who runs in a lane, and which row of the batch is whose: iteration-level scheduling with integers only.

Between any two steps finished, cancelled and expired sentences leave and waiting ones enter. Source of the idea: Orca
(OSDI 2022).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from server.sequence import Sequence
from server.waiting_queue import BatchLimits, WaitingQueue


@dataclass(frozen=True, slots=True)
class Plan:
    """Who enters the batch between two steps, and who left it because the caller did or its deadline passed."""

    admitted: list[Sequence]
    cancelled: list[Sequence]
    expired: list[Sequence]


@dataclass(slots=True)
class RowMoves:
    """Row copies to make before the next step: to[i] becomes a copy of from_[i]; no row is on both sides.

    `common[i]`: positions of the self-attention cache that are the same in both rows already, since they were beams of
    the same sentence; 0 if the target row held another one, so that what depends on the source is to be copied too.
    """

    to: list[int] = field(default_factory=list)
    from_: list[int] = field(default_factory=list)
    common: list[int] = field(default_factory=list)

    def add(self, to: int, from_: int, common: int) -> None:
        """Appends one copy."""
        self.to.append(to)
        self.from_.append(from_)
        self.common.append(common)


class Scheduler:
    """One lane's running sentences and their rows 0..num_rows - 1, without gaps."""

    def __init__(self, queue: WaitingQueue, limits: BatchLimits, clock: Callable[[], float]) -> None:
        self._queue = queue
        self._limits = limits
        self._clock = clock
        self.running: list[Sequence] = []

    @property
    def num_rows(self) -> int:
        """Rows that the next step has."""
        return sum(len(sequence.rows) for sequence in self.running)

    @property
    def held_rows(self) -> int:
        """Rows that are kept free for the running sentences, whose beams may grow."""
        return sum(sequence.num_rows for sequence in self.running)

    @property
    def is_alone(self) -> bool:
        """Whether no other lane has anything to do."""
        return self._queue.is_rest(self.held_rows)

    def schedule(self) -> Plan:
        """Drops who left or expired and admits who fits; these run without a row until `place`."""
        now = self._clock()
        over = [sequence for sequence in self.running if sequence.is_over(now)]
        self.remove(over)
        over += self._queue.drop_over(now)
        admitted = self._queue.take(self.running, self._limits)
        late = [sequence for sequence in admitted if sequence.is_over(now)]  # that `drop_over` did not look at
        self.running.extend(admitted)
        self.remove(late)
        over += late
        admitted = [sequence for sequence in admitted if sequence not in late]
        cancelled = [sequence for sequence in over if sequence.future.cancelled()]
        expired = [sequence for sequence in over if not sequence.future.cancelled()]
        return Plan(admitted, cancelled, expired)

    def place(self, sequences: list[Sequence]) -> None:
        """Gives each encoded sentence its first row, behind the rows in use."""
        for row, sequence in enumerate(sequences, start=self.num_rows):
            sequence.rows = [row]

    def remove(self, sequences: list[Sequence]) -> None:
        """Takes sentences out of the batch; their rows are free from the next `arrange` on."""
        if sequences:
            gone = set(sequences)
            self.running = [sequence for sequence in self.running if sequence not in gone]
            self._queue.release(sum(sequence.num_rows for sequence in sequences))

    def arrange(self, parents: dict[Sequence, list[int]]) -> RowMoves:
        """Lays the next step's rows out without gaps, moving as few as possible.

        Args:
            parents: for each running sentence that was stepped, the beam that each of its next beams extends; a
                sentence without an entry keeps its rows.

        Returns:
            The copies to make; `Sequence.rows` are the new ones already.
        """
        moves = RowMoves()
        chosen = {s: [s.rows[beam] for beam in parents.get(s, range(len(s.rows)))] for s in self.running}
        num_rows = sum(len(rows) for rows in chosen.values())
        kept = {row for rows in chosen.values() for row in rows if row < num_rows}
        free = deque(row for row in range(num_rows) if row not in kept)
        foreign: list[tuple[Sequence, int, int]] = []
        for sequence, sources in chosen.items():
            if len(kept.intersection(sources)) == len(sources):  # none twice, none behind the end: all stay
                sequence.rows = sources
                continue
            own_free = [row for row in sequence.rows if row < num_rows and row not in kept]
            seen: set[int] = set()
            rows = list(sources)
            for beam, source in enumerate(sources):
                if source < num_rows and source not in seen:
                    seen.add(source)
                elif own_free:
                    rows[beam] = own_free.pop()
                    free.remove(rows[beam])
                    old_beams = sequence.rows.index(rows[beam]), sequence.rows.index(source)
                    moves.add(rows[beam], source, sequence.search.num_common(*old_beams))
                else:
                    foreign.append((sequence, beam, source))
            sequence.rows = rows
        for sequence, beam, source in foreign:
            sequence.rows[beam] = free.popleft()
            moves.add(sequence.rows[beam], source, common=0)
        return moves
