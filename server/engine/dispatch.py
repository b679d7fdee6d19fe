"""Between requests and lanes: requests are admitted to the waiting queue, and lanes take sentences from it.

Here is the only lock, and all waiting and waking. `server.engine.admission` decides whether a request is admitted, and
`server.engine.fair_queue` which sentence is next.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet

from server.averages import FadingSum
from server.engine.admission import Admission, Snapshot, admit, due_at, flow_of
from server.engine.cost import CostModel, Demand
from server.engine.fair_queue import Entry, FairQueue, Key
from server.engine.flow import Flow, FlowId
from server.engine.limits import EngineLimits, Footprint, LaneLimits
from server.engine.sentence import Sentence
from server.errors import NotServing
from server.shares import Shares

_ACTIVE_SECONDS = 1.0  # after its last request, that a flow keeps its share: half, and pauses of a caller open its rows
_PACE_SECONDS = 2.0  # for which it is remembered what time the background had: half, and forecasts jump
_FIRST_SECONDS = 0.25  # of all time, that the background is taken to have had at first
_LOOK_SECONDS = 0.1  # between two looks at all that waits: half, and a long queue takes twice the time of the lanes


class Dispatch:
    """Shared by the callers of an engine and all of its lanes.

    Args:
        limits: of the engine.
        cost: forecasts what sentences take.
        clock: deadlines are its instants.

    Attributes:
        is_open: False once the engine has been stopped.
    """

    def __init__(self, limits: EngineLimits, cost: CostModel, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._cost = cost
        self._clock = clock
        self._queue = FairQueue()
        self._shares: Shares[FlowId] = Shares(_ACTIVE_SECONDS, clock)
        self._rows: Counter[FlowId] = Counter()  # that run, by flow
        self._running_rows = 0
        self._background: AbstractSet[FlowId] = frozenset()  # flows
        self._seconds = FadingSum(_PACE_SECONDS, clock), FadingSum(_PACE_SECONDS, clock)  # of foreground and background
        self._num_requests = 0  # that came
        self._next_look = -math.inf
        self._changed = threading.Condition()
        self.is_open = True

    @property
    def num_sentences(self) -> int:
        """Sentences that wait."""
        return self._queue.num_sentences

    @property
    def num_tokens(self) -> int:
        """Source tokens of the sentences that wait."""
        return self._queue.num_tokens

    @property
    def asked_seconds(self) -> float:
        """Seconds of a lane for a step of all that runs and waits."""
        return (self._running_rows + self._queue.num_rows) * self._cost.row_step_seconds

    def check(self, demand: Demand, deadline: float | None, flow: Flow) -> Admission:
        """Returns what is to be expected of a request if it came now; raises as `add`."""
        with self._changed:
            return self._admit(demand, deadline, flow_of(demand, flow, self._cost, self._limits))

    def add(self, sentences: Sequence[Sentence]) -> None:
        """Appends a request's sentences, which share all but their sources, all or none.

        Raises:
            Overloaded: the queue is full, or the answer would come too late.
            DeadlineExceeded: an idle engine's answer would come too late.
            NotServing: the engine has been stopped.
        """
        if not sentences:
            return
        first = sentences[0]
        work = sum(sentence.work for sentence in sentences)
        demand = Demand(work, max(s.steps for s in sentences), first.options.beam_size, len(sentences))
        flow = flow_of(demand, first.flow, self._cost, self._limits)
        with self._changed:
            is_alone = not self._running_rows and not self._queue.num_sentences
            admission = self._admit(demand, first.deadline, flow)
            for sentence in sentences:
                sentence.flow = flow
                sentence.forecast_seconds = None if is_alone else admission.seconds
            self._num_requests += 1
            self._queue.add(Entry(sentences, self._key(demand, first.deadline, flow)))
            self._background = admission.background
            self._changed.notify_all()

    def take(
        self, limits: LaneLimits, footprint: Footprint, longest: int, *, is_background: bool
    ) -> tuple[list[Sentence], bool]:
        """Removes the next sentences, as many as a lane may encode now.

        Args:
            limits: of the lane's foreground or background.
            footprint: of the sentences that run there; one sentence may enter in any case if there are none.
            longest: positions of the longest of their rows.
            is_background: whether flows that are in the background are asked for, or the others.

        Returns:
            The sentences, and whether others are left although the lane takes as many as it may.
        """
        if not self._queue.num_sentences:  # as before most steps
            return [], False
        taken: list[Sentence] = []
        longest_taken = 0
        with self._changed:
            even_rows = math.ceil((self._queue.num_rows + self._running_rows) / self._limits.num_lanes)
            while (entry := self._next(is_background=is_background)) is not None:
                head = entry.head
                longest = max(longest, len(head.source_ids))
                longest_taken = max(longest_taken, len(head.source_ids))
                with_head = footprint + head.footprint
                if footprint.rows >= even_rows:
                    break
                is_too_much = longest_taken * (len(taken) + 1) > limits.max_encode_tokens
                if (footprint.rows and not limits.allow(with_head, longest)) or (taken and is_too_much):
                    return taken, True
                taken.append(self._queue.pop(entry))
                self._start(head)
                footprint = with_head
        return taken, False

    def drop_over(self) -> list[Sentence]:
        """Removes sentences whose callers have left or whose answers would come after their deadlines."""
        now = self._clock()
        if now < self._next_look or not self._queue.num_sentences:
            return []
        self._next_look = now + _LOOK_SECONDS
        dropped: list[Sentence] = []
        with self._changed:
            # An idle engine tries what it has admitted: its forecasts are rough.
            is_idle = not self._running_rows
            step_seconds = 0.0 if is_idle else self._cost.step_seconds(self._running_rows)
            work_seconds = 0.0 if is_idle else self._cost.row_step_seconds / self._limits.num_lanes
            for entry in list(self._queue):
                first, rest = entry.head, 0.0 if entry.has_begun else entry.work * work_seconds
                is_late = first.deadline is not None and now + rest + first.steps * step_seconds >= first.deadline
                over = [sentence for sentence in entry.sentences if is_late or sentence.future.cancelled()]
                self._queue.remove(entry, over)
                dropped += over
        return dropped

    @property
    def has_background(self) -> bool:
        """Whether a flow is in the background."""
        return bool(self._background)

    def note_seconds(self, seconds: float, *, is_background: bool) -> None:
        """Notes what a lane's steps took while a flow was in the background."""
        with self._changed:
            self._seconds[is_background].add(seconds)

    def start(self, sentences: Collection[Sentence]) -> None:
        """Notes that a lane has taken sentences that never waited."""
        with self._changed:
            for sentence in sentences:
                self._start(sentence)

    def end(self, sentences: Collection[Sentence]) -> None:
        """Notes that sentences that had been taken have left their lane."""
        with self._changed:
            for sentence in sentences:
                self._end(sentence)

    def is_all(self, num_rows: int) -> bool:
        """Whether these rows are all that there is: nothing waits, and no other lane has any."""
        return self._running_rows == num_rows and not self._queue.num_sentences

    def wait(self, is_wanted: Callable[[], bool], seconds: float | None = None) -> bool:
        """Blocks an idle lane until it is wanted, asked after each change and `wake`; False: closed, or time is up."""
        with self._changed:
            return self._changed.wait_for(lambda: is_wanted() or not self.is_open, seconds) and self.is_open

    def wake(self) -> None:
        """Has every idle lane ask again whether it is wanted."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> list[Sentence]:
        """Refuses all further work, wakes every lane, and returns what waits."""
        with self._changed:
            self.is_open = False
            left = [sentence for entry in self._queue for sentence in entry.sentences]
            self._queue = FairQueue()
            self._changed.notify_all()
            return left

    def _key(self, demand: Demand, deadline: float | None, flow: Flow) -> Key:
        due = due_at(demand, self._clock(), deadline, self._cost, self._limits)
        return Key(flow.rank, due, self._num_requests)

    def _admit(self, demand: Demand, deadline: float | None, flow: Flow) -> Admission:
        """Notes that a flow asks, and returns what is to be expected of its request; holds the lock."""
        if not self.is_open:
            raise NotServing("the server is shutting down")
        self._shares.ask(flow.id, flow.weight)
        work_before, other_work = self._queue.work_before(flow, self._key(demand, deadline, flow))
        snapshot = Snapshot(
            now=self._clock(),
            work_before=work_before,
            other_work=other_work,
            waiting=(self._queue.num_sentences, self._queue.num_tokens),
            waiting_of_flow=self._queue.of_flow(flow),
            weights=self._shares.weights(),
            rows=self._rows + self._queue.rows(),
            background=self._background,
            background_pace=self._background_pace,
        )
        return admit(demand, flow, deadline, snapshot, self._cost, self._limits)

    @property
    def _background_pace(self) -> float:
        """The part of the lanes' time that the background has had lately while it had work, over 0 to 1."""
        foreground, background = self._seconds[False].value, self._seconds[True].value
        return (background + _FIRST_SECONDS) / (foreground + background + _FIRST_SECONDS)

    def _next(self, *, is_background: bool) -> Entry | None:
        for entry in self._queue.heads():
            if (entry.flow.id in self._background) == is_background:
                return entry
        return None

    def _start(self, sentence: Sentence) -> None:
        self._shares.hold(sentence.flow.id, sentence.flow.weight)
        self._count(sentence, +1)

    def _end(self, sentence: Sentence) -> None:
        self._shares.release(sentence.flow.id)
        self._count(sentence, -1)

    def _count(self, sentence: Sentence, sign: int) -> None:
        self._rows[sentence.flow.id] += sign * sentence.footprint.rows
        self._running_rows += sign * sentence.footprint.rows
