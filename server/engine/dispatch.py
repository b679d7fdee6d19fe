"""Between requests and lanes: requests add sentences to the waiting queue, and lanes take them.

This file has the only lock, and all waiting and waking. `server.engine.admission` decides whether a request is
admitted, and `server.engine.fair_queue` which sentence is next.
"""

import math
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future

from server.averages import FadingSum
from server.decoding.result import Result
from server.engine.admission import HOPELESS, Admission, Claim, Request, Snapshot, admit, request_of
from server.engine.background import Background
from server.engine.cost import CostModel, Demand
from server.engine.fair_queue import Entry, FairQueue, Load
from server.engine.flow import Flow
from server.engine.limits import EngineLimits, Footprint, LaneLimits
from server.engine.sentence import Sentence
from server.errors import NotServing, TranslationError
from server.shares import Shares

# A flow keeps its share for so long after its last request. Half, and a flood takes the rows of callers that pause.
# Twice, and rows stay free for callers that have gone.
_ACTIVE_SECONDS = 1.0
_LOOK_SECONDS = 0.1  # between two looks at all that waits; half, and a long queue costs lanes twice the time


class Dispatch:
    """Is shared by the callers of an engine and all of its lanes.

    Attributes:
        clock: seconds, monotonic.
        background: how much of the lanes it has.
        num_left: sentences whose callers have left, since the start; it grows whenever one is cancelled.
        is_open: False once the engine has been stopped.
    """

    def __init__(self, limits: EngineLimits, cost: CostModel, clock: Callable[[], float]) -> None:
        self.limits = limits
        self.cost = cost
        self.clock = clock
        self._queue = FairQueue()
        self._shares: Shares[Flow] = Shares(_ACTIVE_SECONDS, clock)  # of rows that run or wait
        self._asked: dict[Flow, FadingSum] = {}  # row-steps, of active flows
        self._running_rows = 0  # of all flows; lanes read it without the lock
        self.background = Background(clock)
        self._num_foreground = 0  # lanes that have one
        self._num_idle = 0  # lanes that have nothing
        self._is_resting = False  # a lane is
        self._next_look = -math.inf
        self.num_left = 0
        self._seen_left = 0  # `num_left` at the last look
        self._changed = threading.Condition()
        self.is_open = True

    @property
    def waiting(self) -> Load:
        """What waits in the queue."""
        return self._queue.load

    @property
    def asked_seconds(self) -> float:
        """Seconds that a lane would take for one step of all sentences that run or wait."""
        return (self._running_rows + self._queue.load.num_rows) * self.cost.row_step_seconds

    def check(self, demand: Demand, deadline: float, flow: Flow) -> Admission:
        """Returns what `add` would decide about a request at this moment; raises as `add`.

        The work of a request counts once for its flow: here if it is refused, else in `add`.
        """
        with self._changed:
            return self._admit(request_of(demand, flow, self.clock(), deadline, self.cost))

    def add(self, sentences: Sequence[Sentence]) -> None:
        """Adds all sentences of a request, or none. They differ only in their sources. Raises as `Engine.submit`."""
        if not sentences:
            return
        first = sentences[0]
        demand = Demand.of([sentence.steps for sentence in sentences], first.options.num_rows)
        request = request_of(demand, first.flow, self.clock(), first.deadline, self.cost)
        for sentence in sentences:
            sentence.flow = request.flow
        entry = Entry(sentences, request.due)  # made without the lock, because many sentences take long
        with self._changed:
            admission = self._admit(request)
            self._asked[request.flow].add(demand.work)
            entry.forecast_seconds = None if self.is_all(0) else admission.seconds
            self._queue.set_background(admission.background)
            self._queue.add(entry)
            self._shares.hold(entry.flow, entry.flow.weight, entry.load.num_rows)
            self._changed.notify_all()
        for sentence in sentences:  # nobody else has the futures yet, so nobody can have left
            self.watch(sentence)

    def watch(self, sentence: Sentence) -> None:
        """Has `num_left` count the sentence when its caller leaves."""
        sentence.future.add_done_callback(self._note_done)

    def _note_done(self, future: Future[Result]) -> None:
        if future.cancelled():
            with self._changed:
                self.num_left += 1

    def take(
        self, limits: LaneLimits, footprint: Footprint, longest: int, *, is_background: bool
    ) -> tuple[list[Sentence], bool]:
        """Removes the next sentences from the queue, as many as a lane may encode now.

        A sentence goes on waiting
        - if another one is before it (`FairQueue.head`);
        - if the lane has its part of all rows already, so that another lane should take the sentence;
        - if the lane has no rows or no cache for it;
        - if the sentences that are taken now are as much as one encoder run may have.

        Args:
            limits: of the lane's foreground or background.
            footprint: of the sentences that run there. If none runs, one sentence is taken whatever its footprint.
            longest: positions of the longest row that runs there.

        Returns:
            The sentences, and whether others wait although the lane has taken as many as it may.
        """
        taken: list[Sentence] = []
        longest_taken = 0
        with self._changed:
            even_rows = math.ceil((self._queue.load.num_rows + self._running_rows) / self.limits.num_lanes)
            while (entry := self._queue.head(is_background=is_background)) is not None:
                head = entry.sentences[0]
                longest = max(longest, len(head.source_ids))
                longest_taken = max(longest_taken, len(head.source_ids))
                with_head = footprint + head.footprint
                if footprint.rows >= even_rows:
                    break
                is_too_much = longest_taken * (len(taken) + 1) > limits.max_encode_tokens
                if (footprint.rows and not limits.allow(with_head, longest)) or (taken and is_too_much):
                    return taken, True
                head.forecast_seconds = entry.forecast_seconds
                taken.append(self._queue.pop(entry))
                self._running_rows += head.footprint.rows
                footprint = with_head
        return taken, False

    def drop_over(self) -> list[Sentence]:
        """Removes waiting sentences whose callers have left, or that are late: see `docs/explanations/terms.md`.

        It looks at them without the lock, because many take long: another lane may take some of them meanwhile.
        """
        now = self.clock()
        if now < self._next_look or not self._queue.load.num_sentences:
            return []
        self._next_look = now + _LOOK_SECONDS
        dropped: list[Sentence] = []
        num_left = self.num_left  # first, so that no caller that leaves meanwhile is missed
        have_left, self._seen_left = num_left != self._seen_left, num_left
        with self._changed:
            entries = list(self._queue)
        for entry in entries:
            with self._changed:
                first, work = next(iter(entry.sentences), None), entry.load.work
            if first is None:
                continue
            demand = Demand(work, first.steps, first.options.num_rows)
            is_rough = entry.forecast_seconds is None or not self._running_rows  # forecasts of an idle engine are
            is_late = now + self.cost.alone_seconds(demand) / (HOPELESS if is_rough else 1.0) >= first.deadline
            if is_late or have_left:
                with self._changed:
                    sentences = list(entry.sentences)
                if over := {each for each in sentences if is_late or each.future.cancelled()}:
                    with self._changed:
                        dropped += self._remove(entry, over)
        return dropped

    def note_seconds(self, seconds: float, *, is_background: bool) -> None:
        """See `Background.note_seconds`."""
        with self._changed:
            self.background.note_seconds(seconds, is_background=is_background, is_used=bool(self._queue.background))

    def count_foreground(self, sign: int) -> None:
        """Notes that a lane has a foreground, +1, or has none any more, -1."""
        with self._changed:
            self._num_foreground += sign
            if self._is_resting:
                self._changed.notify_all()

    def rest(self, is_wanted: Callable[[], bool], seconds: float) -> float:
        """Has a lane wait while others have a foreground and no other is idle; returns the seconds that it has waited.

        It goes on after so many seconds, if it is wanted, or if a sentence of the foreground waits. One lane rests at a
        time. So a core is free for the thread that answers calls, which would else take one from a foreground.
        """

        def is_over() -> bool:
            if not self._num_foreground or self._num_idle or not self.is_open or is_wanted():
                return True
            return self._queue.head(is_background=False) is not None

        started = self.clock()
        with self._changed:
            if self._is_resting or is_over():
                return 0.0
            self._is_resting = True
            self._changed.wait_for(is_over, min(seconds, threading.TIMEOUT_MAX))
            self._is_resting = False
        rested = self.clock() - started
        self.note_seconds(rested, is_background=False)
        return rested

    def count(self, sentences: Collection[Sentence], sign: int) -> None:
        """Notes that a lane runs a canary, +1, or that sentences have left a lane, -1."""
        with self._changed:
            for sentence in sentences:
                self._shares.hold(sentence.flow, sentence.flow.weight, sign * sentence.footprint.rows)
                self._running_rows += sign * sentence.footprint.rows

    def is_all(self, num_rows: int) -> bool:
        """Whether nothing waits, and no more rows than these run."""
        return self._running_rows == num_rows and not self._queue.load.num_sentences

    def wait(self, is_wanted: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Blocks an idle lane until it is wanted; returns False if the dispatch is closed or the time is up."""
        with self._changed:
            self._num_idle += 1
            if self._is_resting:
                self._changed.notify_all()
            self._changed.wait_for(lambda: is_wanted() or not self.is_open, min(seconds, threading.TIMEOUT_MAX))
            self._num_idle -= 1
            return is_wanted() and self.is_open

    def wake(self) -> None:
        """Lets every idle or resting lane find out whether it is wanted."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> list[Sentence]:
        """Refuses all further requests, wakes every lane, and returns the sentences that wait."""
        with self._changed:
            self.is_open = False
            left = [each for entry in list(self._queue) for each in self._remove(entry, set(entry.sentences))]
            self._changed.notify_all()
            return left

    def _remove(self, entry: Entry, sentences: Collection[Sentence]) -> list[Sentence]:
        removed = self._queue.remove(entry, sentences)
        self._shares.hold(entry.flow, entry.flow.weight, -sum(sentence.footprint.rows for sentence in removed))
        return removed

    def _admit(self, request: Request) -> Admission:
        """Decides about a request, and notes that its flow is active. The caller holds the lock.

        The work of a refused request counts for its flow, unless it is of a bulk call, which asks again until it is
        admitted. The caller counts that of an admitted one.
        """
        if not self.is_open:
            raise NotServing("the server is shutting down")
        flow, queue = request.flow, self._queue
        self._shares.ask(flow, flow.weight)
        asked, self._asked = self._asked, {}
        claims: dict[Flow, Claim] = {}
        for each, weight, held in self._shares.active():
            work = self._asked[each] = asked.get(each) or FadingSum(self.clock)
            claims[each] = Claim(weight, work.value + queue.load_of(each).work, held)
        own = claims[flow]
        claims[flow] = own._replace(wanted=own.wanted + request.demand.work)
        snapshot = Snapshot(
            now=self.clock(),
            work_before=queue.work_before(flow, request.due),
            waiting=queue.load,
            waiting_of_flow=queue.load_of(flow),
            claims=claims,
            background=queue.background,
            background_pace=self.background.pace,
        )
        try:
            return admit(request, snapshot, self.cost, self.limits)
        except TranslationError:
            if not flow.is_bulk:
                self._asked[flow].add(request.demand.work)
            raise
