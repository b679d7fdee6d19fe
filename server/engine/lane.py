"""One thread that steps a batch of each kind in turn."""

from collections.abc import Callable
from functools import partial, reduce
from operator import add

from server.engine.batch import Batch
from server.engine.limits import BatchLimits, Footprint
from server.engine.waiting_queue import WaitingQueue
from server.errors import NotServing
from server.network import Runner, StepKind
from server.telemetry.model_metrics import ModelMetrics

MAX_FAILURES = 3  # steps that fail one after another before a lane calls itself dead
MAX_STEP_SECONDS = 30.0  # a step that takes longer hangs


class Lane:
    """Runs sentences of all kinds; its batches share its limits, and each exists once it is needed."""

    def __init__(
        self,
        runner: Runner,
        queue: WaitingQueue,
        limits: BatchLimits,
        metrics: ModelMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._metrics = metrics
        self._clock = clock
        self._open = partial(Batch, runner=runner, queue=queue, limits=limits, metrics=metrics, clock=clock)
        self._batches = {StepKind.PLAIN: self._open(StepKind.PLAIN)}
        self._step_started: float | None = None

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return sum(batch.num_rows for batch in list(self._batches.values()))

    @property
    def cache_bytes(self) -> int:
        """Bytes of the caches' buffers."""
        return sum(batch.cache_bytes for batch in list(self._batches.values()))

    def is_alive(self) -> bool:
        """Says whether the last steps succeeded and none hangs."""
        started = self._step_started
        hangs = started is not None and self._clock() - started > MAX_STEP_SECONDS
        return not hangs and all(batch.num_failures < MAX_FAILURES for batch in list(self._batches.values()))

    def run(self) -> None:
        """Steps while there is work, sleeps while there is none, until the queue is closed."""
        while self._queue.wait():
            self.step()
            while self._is_running and self._queue.is_open:
                self.step()
        for batch in self._batches.values():
            batch.drop(NotServing("the server has shut down"))

    def step(self) -> None:
        """Takes one step with the batch of each kind that has any sentences, running or waiting."""
        for kind in StepKind:
            if kind not in self._batches and self._queue.has_waiting(kind):
                self._batches[kind] = self._open(kind)
        for batch in self._batches.values():
            if batch.is_busy:
                self._step_started = self._clock()
                others = [other.footprint for other in self._batches.values() if other is not batch]
                batch.step(reduce(add, others, Footprint()))
                self._step_started = None
                self._metrics.engine_last_step_timestamp_seconds.set_to_current_time()

    @property
    def _is_running(self) -> bool:
        return any(batch.footprint.rows for batch in self._batches.values())
