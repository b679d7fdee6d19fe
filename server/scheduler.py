"""Who waits, who runs, and which row of the batch is whose: iteration-level scheduling with integers only.

Between any two steps finished, cancelled and expired sentences leave and waiting ones enter. One `WaitingQueue` feeds
the `Scheduler` of every lane. Source of the idea: Orca (OSDI 2022); the padded-token budget follows
text-embeddings-inference.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from server.errors import NotServing, Overloaded
from server.sequence import Sequence

RETRY_AFTER_SECONDS = 1.0  # told to a client that was refused


class WaitingQueue:
    """First come, first served; bounded in sentences and tokens; shared by all lanes (hence the lock).

    A request is admitted whole while the queue stands below both limits, so one larger than a limit still gets in when
    there is room: what waits is bounded by the limit plus one request.
    """

    def __init__(self, *, max_sentences: int, max_tokens: int, num_lanes: int) -> None:
        self._max_sentences = max_sentences
        self._max_tokens = max_tokens
        self._num_lanes = num_lanes
        self._waiting: deque[Sequence] = deque()
        self._changed = threading.Condition()
        self.is_open = True
        self._running_rows = 0  # of all lanes
        self.num_tokens = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, sequences: Iterable[Sequence]) -> None:
        """Appends a request's sentences, all or none.

        Raises:
            Overloaded: the queue is at a limit.
            NotServing: the queue is closed.
        """
        with self._changed:
            if not self.is_open:
                raise NotServing("the server is shutting down")
            if len(self._waiting) >= self._max_sentences:
                raise Overloaded(
                    f"queue is full: {len(self._waiting)} sentences wait, limit {self._max_sentences}",
                    reason="sentences",
                    retry_after_seconds=RETRY_AFTER_SECONDS,
                )
            if self.num_tokens >= self._max_tokens:
                raise Overloaded(
                    f"queue is full: {self.num_tokens} source tokens wait, limit {self._max_tokens}",
                    reason="tokens",
                    retry_after_seconds=RETRY_AFTER_SECONDS,
                )
            for sequence in sequences:
                self._waiting.append(sequence)
                self.num_tokens += len(sequence.source_ids)
            self._changed.notify_all()

    def take(self, held_rows: int, max_rows: int, max_padded_tokens: int) -> list[Sequence]:
        """Removes the first sentences that one lane may encode now.

        Args:
            held_rows: rows of the lane that are taken.
            max_rows: rows that the lane has.
            max_padded_tokens: budget of longest sentence x sentences; a single longer sentence passes.
        """
        with self._changed:
            waiting_rows = 0
            for sequence in self._waiting:
                waiting_rows += sequence.num_rows
                if waiting_rows >= max_rows * self._num_lanes:
                    break
            fair_share = math.ceil((waiting_rows + self._running_rows) / self._num_lanes)
            taken: list[Sequence] = []
            longest = 0
            while self._waiting:
                head = self._waiting[0]
                longest = max(longest, len(head.source_ids))
                if held_rows and (held_rows >= fair_share or held_rows + head.num_rows > max_rows):
                    break
                if taken and longest * (len(taken) + 1) > max_padded_tokens:
                    break
                taken.append(self._waiting.popleft())
                self.num_tokens -= len(head.source_ids)
                held_rows += head.num_rows
                self._running_rows += head.num_rows
            return taken

    def release(self, num_rows: int) -> None:
        """Notes that a lane has freed rows."""
        with self._changed:
            self._running_rows -= num_rows

    def wait(self) -> bool:
        """Blocks an idle lane until there may be work; says whether the queue is still open."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not self.is_open)
            return self.is_open

    def close(self) -> list[Sequence]:
        """Refuses all further work, wakes every lane, and returns what waits."""
        with self._changed:
            self.is_open = False
            left = list(self._waiting)
            self._waiting.clear()
            self.num_tokens = 0
            self._changed.notify_all()
            return left


@dataclass(frozen=True, slots=True)
class Plan:
    """Who enters the batch between two steps, and who left it because the caller did or its deadline passed."""

    admitted: list[Sequence]
    cancelled: list[Sequence]
    expired: list[Sequence]


@dataclass(slots=True)
class RowMoves:
    """Row copies to make before the next step: to[i] becomes a copy of from_[i]; no row is on both sides.

    `is_own[i]`: the target row held the same sentence before, so what depends on the source only is there already.
    """

    to: list[int] = field(default_factory=list)
    from_: list[int] = field(default_factory=list)
    is_own: list[bool] = field(default_factory=list)

    def add(self, to: int, from_: int, is_own: bool) -> None:
        """Appends one copy."""
        self.to.append(to)
        self.from_.append(from_)
        self.is_own.append(is_own)


class Scheduler:
    """One lane's running sentences and their rows 0..num_rows - 1, without gaps."""

    def __init__(
        self, queue: WaitingQueue, *, max_rows: int, max_encode_tokens: int, clock: Callable[[], float]
    ) -> None:
        self._queue = queue
        self._max_rows = max_rows
        self._max_encode_tokens = max_encode_tokens
        self._clock = clock
        self.running: list[Sequence] = []

    @property
    def num_rows(self) -> int:
        """Rows that the next step has."""
        return sum(len(sequence.rows) for sequence in self.running)

    def schedule(self) -> Plan:
        """Drops who left or expired and admits who fits; these run without a row until `place`."""
        plan = Plan([], [], [])
        now = self._clock()
        for sequence in self.running:
            self._drop_if_over(sequence, now, plan)
        self.remove([*plan.cancelled, *plan.expired])
        held_rows = sum(sequence.num_rows for sequence in self.running)
        taken = self._queue.take(held_rows, self._max_rows, self._max_encode_tokens)
        plan.admitted.extend(sequence for sequence in taken if not self._drop_if_over(sequence, now, plan))
        self._queue.release(sum(s.num_rows for s in taken) - sum(s.num_rows for s in plan.admitted))
        self.running.extend(plan.admitted)
        return plan

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
            own_free = [row for row in sequence.rows if row < num_rows and row not in kept]
            seen: set[int] = set()
            rows = list(sources)
            for beam, source in enumerate(sources):
                if source < num_rows and source not in seen:
                    seen.add(source)
                elif own_free:
                    rows[beam] = own_free.pop()
                    free.remove(rows[beam])
                    moves.add(rows[beam], source, is_own=True)
                else:
                    foreign.append((sequence, beam, source))
            sequence.rows = rows
        for sequence, beam, source in foreign:
            sequence.rows[beam] = free.popleft()
            moves.add(sequence.rows[beam], source, is_own=False)
        return moves

    def _drop_if_over(self, sequence: Sequence, now: float, plan: Plan) -> bool:
        if sequence.future.cancelled():
            plan.cancelled.append(sequence)
        elif sequence.deadline is not None and now >= sequence.deadline:
            plan.expired.append(sequence)
        else:
            return False
        return True
