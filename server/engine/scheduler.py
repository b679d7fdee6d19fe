"""Who runs in a lane, and which row of the batch is whose: iteration-level scheduling with integers only.

Between any two steps finished, cancelled and expired sentences leave and waiting ones enter. Source of the idea: Orca
(OSDI 2022).
"""

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from server.engine.sequence import Result, Sequence
from server.engine.waiting_queue import BatchLimits, Held, WaitingQueue


@dataclass(frozen=True, slots=True)
class Plan:
    """Who enters the batch between two steps, and who left it because the caller did or its deadline passed."""

    admitted: list[Sequence]
    cancelled: list[Sequence] = field(default_factory=list)
    expired: list[Sequence] = field(default_factory=list)


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
    """One lane's running sentences and their rows 0..num_rows - 1, without gaps but those that `remove` leaves.

    Attributes:
        running: sentences in the batch.
        num_rows: their rows, which the next step has.
    """

    def __init__(self, queue: WaitingQueue, limits: BatchLimits, clock: Callable[[], float]) -> None:
        self._queue = queue
        self._limits = limits
        self._clock = clock
        self.running: list[Sequence] = []
        self.num_rows = 0
        self._held = Held()
        self._has_cancelled = False  # whether a caller has left since `running` was last looked through
        self._first_deadline = math.inf  # no later than any of `running`

    @property
    def held_rows(self) -> int:
        """Rows that are kept free for the sentences, since beams grow."""
        return self._held.rows

    @property
    def is_alone(self) -> bool:
        """Whether no other lane has anything to do."""
        return self._queue.is_rest(self.held_rows)

    def schedule(self, longest: int = 0) -> Plan:
        """Drops who left or expired and admits who fits; these run without a row until `place`.

        Args:
            longest: positions of the longest row of the last step.
        """
        now = self._clock()
        over = self._over(now)
        self.remove(over)
        over += self._queue.drop_over(now)
        use_shortlist = self.running[0].options.use_shortlist if self.running else None
        longest = longest if self.running else 0
        admitted = self._queue.take(self._limits, self._held, longest, use_shortlist)
        late = [sequence for sequence in admitted if sequence.is_over(now)]  # that `drop_over` did not look at
        self.running.extend(admitted)
        self._hold(admitted, +1)
        self.remove(late)
        over += late
        admitted = [sequence for sequence in admitted if sequence not in late]
        for sequence in admitted:
            sequence.future.add_done_callback(self._note_done)
            if sequence.deadline is not None:
                self._first_deadline = min(self._first_deadline, sequence.deadline)
        plan = Plan(admitted)
        for sequence in over:  # asked once: a caller may leave at any moment
            (plan.cancelled if sequence.future.cancelled() else plan.expired).append(sequence)
        return plan

    def place(self, sequences: list[Sequence]) -> None:
        """Gives each encoded sentence its first row, behind the rows in use."""
        for row, sequence in enumerate(sequences, start=self.num_rows):
            sequence.rows = [row]
        self.num_rows += len(sequences)

    def remove(self, sequences: list[Sequence]) -> None:
        """Takes sentences out of the batch; their rows are free from the next `arrange` on."""
        if sequences:
            gone = set(sequences)
            self.running = [sequence for sequence in self.running if sequence not in gone]
            self._hold(sequences, -1)
            self._queue.release(sum(sequence.num_rows for sequence in sequences))
            for sequence in sequences:
                self.num_rows -= len(sequence.rows)
                sequence.rows = []

    def arrange(self, parents: dict[Sequence, list[int]]) -> RowMoves:
        """Lays the next step's rows out without gaps, moving as few as possible.

        Args:
            parents: for sentences that were stepped, the beam that each of the next beams extends; those without an
                entry keep their rows, and those without rows have left.

        Returns:
            The copies to make; `Sequence.rows` are the new ones already.
        """
        moves = RowMoves()
        chosen = {s: [s.rows[beam] for beam in beams] for s, beams in parents.items() if s.rows}
        num_rows = self.num_rows + sum(len(rows) - len(s.rows) for s, rows in chosen.items())
        behind_end = (s for s in self.running if s not in chosen and max(s.rows, default=0) >= num_rows)
        chosen |= {sequence: list(sequence.rows) for sequence in behind_end}
        if not chosen:
            return moves
        kept = {row for s in self.running for row in chosen.get(s, s.rows) if row < num_rows}
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
        self.num_rows = num_rows
        return moves

    def _over(self, now: float) -> list[Sequence]:
        """Returns the running sentences that are over; looks at each only when there may be one."""
        if not self._has_cancelled and now < self._first_deadline:
            return []
        self._has_cancelled = False  # first, so that none that leaves meanwhile is missed
        deadlines = (sequence.deadline for sequence in self.running)
        self._first_deadline = min((d for d in deadlines if d is not None and d > now), default=math.inf)
        return [sequence for sequence in self.running if sequence.is_over(now)]

    def _note_done(self, future: Future[Result]) -> None:
        if future.cancelled():
            self._has_cancelled = True

    def _hold(self, sequences: list[Sequence], sign: int) -> None:
        for sequence in sequences:
            self._held = self._held.plus(sequence, sign)
