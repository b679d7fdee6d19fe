"""Who waits, and who is next: one queue that feeds every lane.

- Flows take turns by what their sentences cost (`server.engine.line`); those that ask for more than the others have
  no more than their shares of the rows (`server.engine.shares`); within a flow see `server.engine.flow_queue`.
- Sentences of different kinds cannot share a step, so they wait in lines of their own. A line that has seen
  `_MOST_PASSED` sentences of the others pass comes next: they get nothing until it had its turn.
- A request that would not be answered in time is refused at the door, by the forecast of its end; one that cannot be
  in time any more is dropped before it costs a step.
- Encoder runs have a budget of padded tokens; source of the idea: text-embeddings-inference.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial

from server.engine.busy import BusyEngines
from server.engine.charges import Charges
from server.engine.cost import CostModel, Demand
from server.engine.flow import ANYONE, Flow
from server.engine.flow_queue import WaitingRequest
from server.engine.forecast import Forecast, Load, forecast
from server.engine.limits import EngineLimits, Footprint, LaneLimits
from server.engine.line import Line
from server.engine.sentence import Outlook, Sentence
from server.engine.shares import Shares
from server.errors import NotServing, Overloaded
from server.network import StepKind

_LOOK_SECONDS = 0.1
_LOOKS_PER_STEP = 32  # waiting requests; 15 us of a step that takes milliseconds
_MOST_PASSED = 16  # sentences that may be taken from other lines while one waits


class WaitingQueue:
    """Shared by all lanes (hence the lock). It is bounded, see `server.engine.charges`.

    Args:
        limits: of the engine.
        cost: forecasts what sentences take.
        clock: deadlines are its instants.
        busy: asked whether anything runs elsewhere.
    """

    def __init__(self, limits: EngineLimits, cost: CostModel, clock: Callable[[], float], busy: BusyEngines) -> None:
        self._limits = limits
        self._cost = cost
        self._clock = clock
        self.busy = busy
        self._lines = {kind: Line() for kind in StepKind}
        self.shares = Shares(limits, cost, clock)
        self._changed = threading.Condition()
        self.charges = Charges(limits)
        self._left_rows = 0  # that `take` left waiting
        self._running_rows = 0  # of all lanes
        self._num_requests = 0  # that came
        self._owed_looks = 0
        self._last_look = -math.inf
        self._dropped: list[Sentence] = []  # that `drop_over` has yet to return
        self.is_open = True

    def check_room(self, demand: Demand, deadline: float | None = None, flow: Flow = ANYONE) -> Forecast:
        """Says whether a request would be admitted now, and what is to be expected of it.

        Args:
            demand: of all its sentences.
            deadline: instant of the clock; None for never.
            flow: that it belongs to.

        Raises:
            Overloaded: the queue is at a limit, or the answer would come too late.
            DeadlineExceeded: an idle engine's answer would come too late.
            NotServing: the queue is closed.
        """
        if not self.is_open:
            raise NotServing("the server is shutting down")
        try:
            self.charges.check(flow, self.shares.share)
            expected = self._forecast(demand, deadline, flow)
            expected.check_alone()
            if self.charges.num_rows and expected.seconds > expected.remaining and self._has_not_looked_lately():
                expected = self._forecast(demand, deadline, flow)
            if self._running_rows or self.charges.num_rows:
                expected.check()
        except Overloaded:
            with self._changed:
                self.shares.ask(flow, demand.work, is_refused=True)
            raise
        return expected

    def add(self, sentences: Iterable[Sentence]) -> None:
        """Appends a request's sentences, which share all but their sources, all or none; raises as `check_room`."""
        waiting = deque(sentences)
        if not waiting:
            return
        first = waiting[0]
        work = sum(sentence.work for sentence in waiting)
        demand = Demand(work, max(sentence.steps for sentence in waiting), first.options.beam_size, len(waiting))
        with self._changed:
            expected = self.check_room(demand, first.deadline, first.flow)
            outlook = Outlook(expected.seconds, len(waiting)) if expected.is_crowded else None
            for sentence in waiting:
                sentence.outlook = outlook
            self._num_requests += 1
            self.shares.ask(first.flow, work, is_small=work <= expected.burst)
            request = WaitingRequest(waiting, work, expected.burst, (first.flow.rank, expected.due, self._num_requests))
            self._lines[first.kind].add(request)
            self._charge(request, +1)
            self.charges.count(waiting, +1)
            self._changed.notify_all()

    def has_next(self, kind: StepKind, *, is_background: bool = False) -> bool:
        """Whether sentences of a kind wait that may be taken, of those that are in the background or of the others."""
        if is_background and self.shares.is_undivided and not self._lines[kind].has_large:  # as in most steps
            return False
        with self._changed:
            return self._lines[kind].next(partial(self.shares.allow, is_background=is_background)) is not None

    def take(
        self,
        kind: StepKind,
        limits: LaneLimits,
        footprint: Footprint | None = None,
        longest: int = 0,
        most_step_seconds: float = math.inf,
        *,
        is_background: bool = False,
    ) -> list[Sentence]:
        """Removes the next sentences of a kind that a lane may encode now.

        Args:
            kind: of the lane's batch that they are for.
            limits: of the lane.
            footprint: of all sentences that the lane runs; None for none.
            longest: positions of the longest of their rows.
            most_step_seconds: that a step may take for those who run to meet their deadlines.
            is_background: whether they are to be of those that are in the background, or of the others.
        """
        if not self.charges.num_sentences:  # as before most steps
            self._left_rows = 0
            return []
        footprint = footprint or Footprint()
        limits = self.shares.background_limits(limits) if is_background else limits
        with self._changed:
            fair_share = math.ceil((self.charges.num_rows + self._running_rows) / self._limits.num_lanes)
            line, may_run = self._lines[kind], partial(self.shares.allow, is_background=is_background)
            others = [other for other in self._lines.values() if other is not line and other.next(may_run)]
            taken: list[Sentence] = []
            longest_taken = 0
            while all(other.num_passed < _MOST_PASSED for other in others) and (request := line.next(may_run)):
                head = request.head
                longest = max(longest, len(head.source_ids))
                longest_taken = max(longest_taken, len(head.source_ids))
                with_head = footprint + head.footprint
                if footprint.rows and (footprint.rows >= fair_share or not limits.allow(with_head, longest)):
                    break
                if footprint.rows and not self._cost.is_within(with_head.rows, most_step_seconds):
                    break
                if taken and longest_taken * (len(taken) + 1) > limits.max_encode_tokens:
                    break
                taken.append(self._pop(line, request))
                self.shares.start([head], is_background=is_background)
                footprint = with_head
                line.num_passed = 0
                for other in others:
                    other.num_passed += 1
            self.charges.count(taken, -1)
            self._left_rows = self.charges.num_rows
            self._running_rows += sum(sentence.footprint.rows for sentence in taken)
            return taken

    def drop_over(self, now: float, rows: int = 1) -> list[Sentence]:
        """Removes sentences whose caller has left, and requests that would be answered after their deadline.

        A request's first sentence speaks for all, as they share caller and deadline. To look at 10,000 takes as long as
        a step: calls do it in turn, `_LOOKS_PER_STEP` each. `take` may return a sentence that nobody has looked at.

        Args:
            now: instant of the clock.
            rows: that the next step is expected to have.
        """
        if not self.charges.num_sentences and not self._dropped:
            return []
        with self._changed:
            self._owed_looks += _LOOKS_PER_STEP
            if self._owed_looks >= sum(line.num_requests for line in self._lines.values()):
                self._look(now, rows)
            dropped, self._dropped = self._dropped, []
            return dropped

    def _look(self, now: float, rows: int) -> None:
        """Takes out whom `drop_over` shall return."""
        self._owed_looks = 0
        if self.charges.num_sentences:
            dropped: list[Sentence] = []
            is_idle = not self._running_rows  # it tries what the door let in
            step_seconds = 0.0 if is_idle else self._cost.step_seconds(rows)
            work_seconds = 0.0 if is_idle else self._cost.row_step_seconds / self._limits.num_lanes
            for line in self._lines.values():
                for request in list(line):
                    if request.end(now, step_seconds, work_seconds) >= request.deadline:
                        dropped += self._remove(line, request)
                    while request.sentences and request.head.future.cancelled():
                        dropped.append(self._pop(line, request))
            self.charges.count(dropped, -1)
            self._dropped += dropped

    def end(self, sentences: Collection[Sentence]) -> None:
        """Notes that sentences that had been taken have left their lane."""
        with self._changed:
            self._running_rows -= sum(sentence.footprint.rows for sentence in sentences)
            self.shares.end(sentences)
            if self.charges.num_sentences:
                self._changed.notify_all()  # rows may be free for a flow that has had its share of them

    def is_short_of_room(self, num_rows: int) -> bool:
        """Says whether `take` has left more waiting than lanes would take that have so many rows each.

        Who has come since then does not count: the next step may have room for them.
        """
        return self._left_rows > 0 and num_rows * self._limits.num_lanes < self._left_rows + self._running_rows

    @property
    def asked_seconds(self) -> float:
        """As of `server.engine.busy.SharingEngine`."""
        return (self._running_rows + self.charges.num_rows) * self._cost.least_row_step_seconds

    def is_all(self, num_rows: int) -> bool:
        """Says whether these rows are all that there is: nothing waits, and no other lane, of any engine, has any."""
        return self._running_rows == num_rows and not self.charges.num_sentences and self.busy.has_one_at_work

    def claim(self, sentences: Collection[Sentence]) -> None:
        """Notes that a lane has taken sentences that never waited."""
        with self._changed:
            self._running_rows += sum(sentence.footprint.rows for sentence in sentences)
            self.shares.start(sentences)

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
            left = [s for line in self._lines.values() for request in line for s in request.sentences]
            for line in self._lines.values():
                line.clear()
            self.charges.clear()
            self._changed.notify_all()
            return left + self._dropped

    def _forecast(self, demand: Demand, deadline: float | None, flow: Flow) -> Forecast:
        pace, gives_way = self.shares.pace(flow), self.shares.gives_way(flow)
        share = pace if gives_way else self.shares.share(flow)
        rows = self._running_rows - (0 if gives_way else self.shares.background_rows)

        def work_before(due: float, is_large: bool) -> float:
            of_flow = sum(line.work_before(flow, due, is_large=is_large) for line in self._lines.values())
            works = (line.work() if gives_way else line.work(self.shares.gives_way) for line in self._lines.values())
            return min(of_flow / share, sum(works))

        caution, work_seconds = self._cost.prices(flow.name, is_modest=self.shares.is_modest(flow))
        load = Load(rows, self.charges.num_rows, share, pace, caution, work_seconds, work_before)
        return forecast(demand, self._clock(), deadline, load, self._cost, self._limits)

    def _has_not_looked_lately(self) -> bool:
        """Looks who has left, before others are refused for their sake, unless that was just now."""
        now = self._clock()
        if now - self._last_look < _LOOK_SECONDS:
            return False
        self._last_look = now
        with self._changed:
            self._look(-math.inf, 1)  # nobody is late yet: those must be answered, which lanes do
        return True

    def _pop(self, line: Line, request: WaitingRequest) -> Sentence:
        """Removes the first sentence of a request."""
        self._charge(request, -1)
        first = line.pop(request)
        self._charge(request, +1)
        return first

    def _remove(self, line: Line, request: WaitingRequest) -> list[Sentence]:
        self._charge(request, -1)
        line.remove(request)
        left, request.sentences = list(request.sentences), deque()
        return left

    def _charge(self, request: WaitingRequest, sign: int) -> None:
        self.charges.add(request.flow, len(request.sentences), request.num_tokens, sign)
