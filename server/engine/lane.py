"""One thread that steps a batch of each kind in turn, and whether it may be trusted.

Sentences of flows that ask for more than the others have batches of their own, in the background: these are stepped
while no others run, and for their share of the time. So rows of a flood do not make the steps of others longer, and it
still has all the time that they leave.

A lane whose step has failed takes nothing more but a probe, a sentence for this lane alone whose translation is known:
whoever watches the engine (`server.models.supervisor`) sends it, and says that the lane may go on, or must go.
"""

import enum
import logging
import math
import threading
from collections import deque
from collections.abc import Callable
from functools import partial, reduce
from operator import add

import numpy as np

from server.engine.background_time import BackgroundTime
from server.engine.batch import Batch
from server.engine.cost import CostModel
from server.engine.failing import fail
from server.engine.limits import Footprint, LaneLimits
from server.engine.sentence import Sentence
from server.engine.waiting_queue import WaitingQueue
from server.errors import NotServing, TranslationError
from server.network import Runner, StepKind
from server.telemetry.model_metrics import ModelMetrics
from server.threads import LANE_NICENESS, be_nice

logger = logging.getLogger(__name__)

_NUM_REMEMBERED = 101  # steps


class LaneState(enum.Enum):
    """What a lane takes; the values are `server.telemetry.model_metrics.LANE_STATES`."""

    SERVING = "serving"  # whoever waits
    SUSPECT = "suspect"  # probes alone, until one has been passed: a step has failed, or the lane replaces another
    OUT = "out"  # nothing: its thread answers its sentences and ends


class Lane:
    """Runs sentences of all kinds, in a batch for each; they share the lane's limits.

    Args:
        runner: runs the network.
        queue: of all lanes.
        cost: learns what its steps take.
        limits: of this one.
        metrics: of the model.
        clock: seconds, monotonic.
        alarm: set whenever there is something for the watcher to look at.
        is_proven: False for a lane that is to pass a probe first.

    Attributes:
        is_out: whether it takes nothing more; see `take_out`.
        has_ended: whether its thread has, all its sentences answered.
        step_started: instant at which the step began that it takes now; None between two steps.
    """

    def __init__(
        self,
        runner: Runner,
        queue: WaitingQueue,
        cost: CostModel,
        limits: LaneLimits,
        metrics: ModelMetrics,
        clock: Callable[[], float],
        alarm: threading.Event,
        *,
        is_proven: bool = True,
    ) -> None:
        self._queue = queue
        self._limits = limits
        self._metrics = metrics
        self._clock = clock
        self._alarm = alarm
        new_batch = partial(Batch, runner=runner, queue=queue, cost=cost, limits=limits, metrics=metrics, clock=clock)
        self._foreground = [new_batch(kind) for kind in StepKind]
        self._background = [new_batch(kind, is_background=True) for kind in StepKind]
        self._batches = self._foreground + self._background
        self._background_time = BackgroundTime()
        self._probe: Sentence | None = None  # that no batch has yet
        self._num_forgiven = 0 if is_proven else -1  # faults; written by the watcher alone, `num_faults` by the thread
        self._step_seconds: deque[float] = deque(maxlen=_NUM_REMEMBERED)
        self.is_out = False
        self.has_ended = False
        self.step_started: float | None = None

    @property
    def state(self) -> LaneState:
        """Where it stands."""
        if self.is_out:
            return LaneState.OUT
        return LaneState.SERVING if self.num_faults == self._num_forgiven else LaneState.SUSPECT

    @property
    def kinds(self) -> list[StepKind]:
        """Kinds of steps that it has tried to take, and plain ones."""
        used = {batch.kind for batch in self._batches if batch.is_used}
        return [kind for kind in StepKind if kind in used or kind is StepKind.PLAIN]

    @property
    def num_faults(self) -> int:
        """Encoder runs and steps that have failed."""
        return sum(batch.num_faults for batch in self._batches)

    @property
    def has_lost_device(self) -> bool:
        """Whether one of them failed with `DeviceLost`."""
        return any(batch.has_lost_device for batch in self._batches)

    @property
    def median_step_seconds(self) -> float:
        """Of the last steps; 0 before the first."""
        return float(np.median(self._step_seconds.copy() or (0.0,)))

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return sum(batch.num_rows for batch in self._batches)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the caches' buffers."""
        return sum(batch.cache_bytes for batch in self._batches)

    def probe(self, sentence: Sentence) -> None:
        """Has the lane run a sentence as soon as there are rows for it, ahead of all that wait; one at a time."""
        self._probe = sentence
        self._queue.wake()

    def forgive(self, num_faults: int) -> None:
        """Lets the lane take sentences again if it has had no more faults than so many."""
        self._num_forgiven = num_faults
        self._queue.wake()

    def take_out(self) -> None:
        """Ends the lane, after the step that it takes now; its sentences are answered UNAVAILABLE."""
        self.is_out = True
        self._queue.wake()

    def abandon(self, error: TranslationError) -> None:
        """Ends the lane and answers its sentences at once, although its thread may hang, and its rows with it."""
        self.take_out()
        for batch in self._batches:
            for sentence in batch.sentences:
                fail(sentence, error, self._metrics)

    def run(self) -> None:
        """Steps while there is work, sleeps while there is none, until the queue is closed or the lane is out."""
        try:
            be_nice(LANE_NICENESS)
            while self._wait() and not self.is_out:
                with self._queue.busy.lane(self._queue):
                    self._step_in_turn()
                    while self._is_running and self._queue.is_open and not self.is_out:
                        self._step_in_turn()
        except BaseException as error:  # whatever it was, every sentence must be answered
            logger.critical("a lane has died", exc_info=error, extra={"facts": {"error": str(error)}})
            self.is_out = True
        finally:
            self._leave()

    def step(self, waited: float = 0.0) -> None:
        """Takes one step with the batch of each kind that has any sentences, running or entering.

        Args:
            waited: seconds for its turn, which are a step's cost to those who wait.
        """
        started = self._clock()
        self._step(self._foreground, waited)
        if not any(map(self._has_work, self._background)):
            return
        shares, seconds = self._queue.shares, self._clock() - started
        if any(batch.sentences for batch in self._foreground):
            shares.background_part.note(seconds, is_background=False)
            self._background_time.note_others(seconds, shares.background_share())
            if not self._background_time.is_due:
                return
        started = self._clock()
        self._step(self._background, waited)
        seconds = self._clock() - started
        shares.background_part.note(seconds, is_background=True)
        self._background_time.note(seconds)
        for batch in self._background:
            if not batch.sentences:
                batch.rest()

    def _has_work(self, batch: Batch) -> bool:
        if batch.sentences:
            return True
        if not self._queue.charges.num_sentences or self._probe is not None or self.state is not LaneState.SERVING:
            return False
        return self._queue.has_next(batch.kind, is_background=batch in self._background)

    def _step(self, batches: list[Batch], waited: float) -> None:
        for batch in batches:
            if not (self._has_work(batch) or self._probe):
                continue
            probes = self._entering(batch)
            if batch.sentences or probes or probes is None:
                started = self.step_started = self._clock()
                others = [other.footprint for other in self._batches if other is not batch and other.sentences]
                batch.step(reduce(add, others, Footprint()), probes, waited)
                self.step_started = None
                self._step_seconds.append(self._clock() - started)
                self._metrics.engine_last_step_timestamp_seconds.set_to_current_time()
                if self.num_faults != self._num_forgiven:
                    self._alarm.set()

    def _step_in_turn(self) -> None:
        busy = self._queue.busy
        if busy.is_shared:
            with busy.turn(self._queue) as waited:
                self.step(waited)
        else:
            self.step()

    @property
    def _is_running(self) -> bool:
        return any(batch.sentences for batch in self._batches)

    def _wait(self) -> bool:
        """Sleeps until the lane is wanted, without its caches after a while; False if the queue has been closed."""
        idle_seconds = self._limits.idle_seconds
        if idle_seconds < math.inf and not self._queue.wait(self._is_wanted, idle_seconds):
            for batch in self._batches:
                batch.rest()
        return self._queue.wait(self._is_wanted)

    def _is_wanted(self) -> bool:
        """Says whether there is a reason not to sleep."""
        if self.is_out or self._probe is not None:
            return True
        return any(map(self._has_work, self._batches))

    def _entering(self, batch: Batch) -> list[Sentence] | None:
        """Returns who enters a batch next: a probe or nobody; or None for those who wait."""
        probe = self._probe
        if probe is None:
            return None if self.state is LaneState.SERVING else []
        rows = sum(each.footprint.rows for each in self._batches)
        has_room = not rows or rows + probe.footprint.rows <= self._limits.max_rows
        if batch in self._background or probe.kind is not batch.kind or not has_room:
            return []
        self._probe = None
        return [probe]

    def _leave(self) -> None:
        """Answers whoever is left, and frees what they took."""
        error = NotServing("the server has shut down")
        if self.is_out:
            error = NotServing("the server has lost what ran this sentence; it may be sent again")
        try:
            for batch in self._batches:
                batch.drop(error)
            if self._probe is not None:
                fail(self._probe, error, self._metrics)
        finally:
            self.step_started = None
            self.has_ended = True
            self._alarm.set()
