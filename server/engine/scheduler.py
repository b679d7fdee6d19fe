"""Who runs in a batch, and which row is whose: iteration-level scheduling with integers only.

Between any two steps finished, cancelled and expired sentences leave and waiting ones enter. Source of the idea: Orca
(OSDI 2022).
"""

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from server.decoding.result import Result
from server.engine.cost import CostModel
from server.engine.limits import Footprint, LaneLimits
from server.engine.sentence import Sentence
from server.engine.waiting_queue import WaitingQueue
from server.network import RowMoves, StepKind

_DIVIDED_ROWS = 0.5  # of what a lane may hold while engines share the cores: each other's steps are slow beside ours


@dataclass(frozen=True, slots=True)
class Plan:
    """Who enters the batch between two steps, and who does not run any more.

    Attributes:
        admitted: enter.
        cancelled: their callers have left.
        expired: their deadlines have passed.
        late: waited too long to be done before their deadlines.
    """

    admitted: list[Sentence]
    cancelled: list[Sentence] = field(default_factory=list)
    expired: list[Sentence] = field(default_factory=list)
    late: list[Sentence] = field(default_factory=list)


class Scheduler:
    """One batch's running sentences and their rows 0..num_rows - 1, without gaps but those that `remove` leaves.

    Attributes:
        kind: of the steps that the batch takes.
        running: sentences in the batch.
        num_rows: their rows, which the next step has.
        footprint: what the sentences take, beams that they do not have yet included.
    """

    def __init__(
        self,
        kind: StepKind,
        queue: WaitingQueue,
        cost: CostModel,
        limits: LaneLimits,
        clock: Callable[[], float],
        *,
        is_background: bool = False,
    ) -> None:
        self.kind = kind
        self._is_background = is_background
        self._queue = queue
        self._cost = cost
        self._limits = limits
        self._clock = clock
        self.running: list[Sentence] = []
        self.num_rows = 0
        self.footprint = Footprint()
        self._has_cancelled = False  # whether a caller has left since `running` was last looked through
        self._first_deadline = math.inf  # no later than any of `running`

    def schedule(self, longest: int = 0, others: Footprint | None = None, probes: list[Sentence] | None = None) -> Plan:
        """Drops who left or expired and admits who fits; these run without a row until `place`.

        Args:
            longest: positions of the longest row of the last step.
            others: what the lane's other batches take; None for nothing.
            probes: sentences that enter instead of those that wait; None lets these enter.
        """
        now = self._clock()
        over = self._over(now)
        self.remove(over)
        footprint = self.footprint + others if others else self.footprint
        over += self._queue.drop_over(now, footprint.rows + 1)
        longest = longest if self.running else 0
        if probes is None:
            seconds = self._most_step_seconds(now)
            limits = self._limits.part(_DIVIDED_ROWS) if self._queue.busy.is_divided else self._limits
            admitted = self._queue.take(
                self.kind, limits, footprint, longest, seconds, is_background=self._is_background
            )
        else:
            admitted = probes
            self._queue.claim(probes)
        unwanted = [sentence for sentence in admitted if sentence.is_over(now)]  # that `drop_over` did not look at
        self._add(admitted)
        self.remove(unwanted)
        over += unwanted
        plan = Plan([sentence for sentence in admitted if sentence not in unwanted])
        for sentence in over:  # asked once: a caller may leave at any moment
            if sentence.future.cancelled():
                plan.cancelled.append(sentence)
            elif sentence.is_over(now):
                plan.expired.append(sentence)
            else:
                plan.late.append(sentence)
        return plan

    def _most_step_seconds(self, now: float) -> float:
        """Returns how long a step may take for all who run to meet their deadlines, but those who cannot anyway.

        So a batch grows only as far as its sentences' deadlines let it: the more rows, the longer a step.
        """
        if self._first_deadline == math.inf or not self._queue.charges.num_sentences:
            return math.inf
        least = self._cost.step_seconds(self.num_rows)
        each = ((s.deadline - now) / s.steps_left for s in self.running if s.deadline is not None)
        return min((seconds for seconds in each if seconds >= least), default=math.inf)

    def place(self, sentences: list[Sentence]) -> int:
        """Gives each encoded sentence its first row, behind the rows in use; returns the first one's."""
        first_row = self.num_rows
        for row, sentence in enumerate(sentences, start=first_row):
            sentence.rows = [row]
        self.num_rows += len(sentences)
        return first_row

    def remove(self, sentences: list[Sentence]) -> None:
        """Takes sentences out of the batch; their rows are free from the next `arrange` on."""
        if sentences:
            gone = set(sentences)
            self.running = [sentence for sentence in self.running if sentence not in gone]
            for sentence in sentences:
                self.footprint -= sentence.footprint
                self.num_rows -= len(sentence.rows)
                sentence.rows = []
            self._queue.end(sentences)

    def arrange(self, parents: dict[Sentence, list[int]]) -> RowMoves:
        """Lays the next step's rows out without gaps, moving as few as possible.

        A beam stays in the row of the beam that it extends, if that row is within the new end and no other beam has
        claimed it. Of the rest, first those are moved that find a row of their own sentence, where only the last
        positions differ; then the others, into rows that other sentences have left.

        Args:
            parents: for sentences that were stepped, the beam that each of the next beams extends; those without an
                entry keep their rows, and those without rows have left.

        Returns:
            The copies to make; `Sentence.rows` are the new ones already.
        """
        moves = RowMoves()
        sources = {s: [s.rows[beam] for beam in beams] for s, beams in parents.items() if s.rows}
        num_rows = self.num_rows + sum(len(rows) - len(s.rows) for s, rows in sources.items())
        # Greedy sentences, and those whose last step failed, have no entry: they move only if they lie behind the end.
        behind_end = (s for s in self.running if s not in sources and max(s.rows, default=0) >= num_rows)
        sources |= {sentence: list(sentence.rows) for sentence in behind_end}
        if sources:
            kept = {row for s in self.running for row in sources.get(s, s.rows) if row < num_rows}
            free = deque(row for row in range(num_rows) if row not in kept)
            homeless: list[tuple[Sentence, int, int]] = []
            for sentence, rows in sources.items():
                beams = self._settle(sentence, rows, kept, num_rows, free, moves)
                homeless.extend((sentence, beam, rows[beam]) for beam in beams)
            for sentence, beam, source in homeless:
                sentence.rows[beam] = free.popleft()
                moves.add(sentence.rows[beam], source, common=0)
            self.num_rows = num_rows
        return moves

    def _settle(
        self,
        sentence: Sentence,
        sources: list[int],
        kept: set[int],
        num_rows: int,
        free: "deque[int]",
        moves: RowMoves,
    ) -> list[int]:
        """Gives the beams of a sentence rows of its own as far as there are any; returns the beams without one.

        Args:
            sentence: whose rows are replaced.
            sources: for each next beam the row that it extends.
            kept: rows that some beam of any sentence extends.
            num_rows: of the next step.
            free: rows of the next step that nobody extends; those that are given away are taken out.
            moves: the copies that this takes are added.
        """
        old_rows, sentence.rows = sentence.rows, list(sources)
        if len(kept.intersection(sources)) == len(sources):  # none twice, none behind the end: all stay
            return []
        own_free = [row for row in old_rows if row < num_rows and row not in kept]
        claimed: set[int] = set()
        homeless: list[int] = []
        for beam, source in enumerate(sources):
            if source < num_rows and source not in claimed:
                claimed.add(source)
            elif own_free:
                row = own_free.pop()
                free.remove(row)
                sentence.rows[beam] = row
                common = sentence.search.num_common(old_rows.index(row), old_rows.index(source))
                moves.add(row, source, common)
            else:
                homeless.append(beam)
        return homeless

    def _add(self, sentences: list[Sentence]) -> None:
        self.running.extend(sentences)
        for sentence in sentences:
            self.footprint += sentence.footprint
            sentence.future.add_done_callback(self._note_done)
            if sentence.deadline is not None:
                self._first_deadline = min(self._first_deadline, sentence.deadline)

    def _over(self, now: float) -> list[Sentence]:
        """Returns the running sentences that are over; looks at each only when there may be one."""
        if not self._has_cancelled and now < self._first_deadline:
            return []
        self._has_cancelled = False  # first, so that none that leaves meanwhile is missed
        deadlines = (sentence.deadline for sentence in self.running)
        self._first_deadline = min((d for d in deadlines if d is not None and d > now), default=math.inf)
        return [sentence for sentence in self.running if sentence.is_over(now)]

    def _note_done(self, future: Future[Result]) -> None:
        if future.cancelled():
            self._has_cancelled = True
