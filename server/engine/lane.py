"""One thread that steps a batch of each kind in turn."""

import os
import threading
from collections.abc import Callable
from functools import reduce
from operator import add

from server.engine.batch import Batch
from server.engine.cost import CostModel
from server.engine.limits import Footprint, LaneLimits
from server.engine.waiting_queue import WaitingQueue
from server.errors import NotServing
from server.network import Runner, StepKind
from server.telemetry.model_metrics import ModelMetrics

MAX_FAILURES = 3  # encoder runs and steps that fail one after another before a lane calls itself dead
_NICENESS = 5  # of a lane's thread: where cores are scarce, whoever answers calls, if only to refuse them, goes first
MAX_STEP_SECONDS = 30.0  # a step that takes longer hangs


class Lane:
    """Runs sentences of all kinds, in a batch for each; they share the lane's limits."""

    def __init__(
        self,
        runner: Runner,
        queue: WaitingQueue,
        cost: CostModel,
        limits: LaneLimits,
        metrics: ModelMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._metrics = metrics
        self._clock = clock
        self._batches = [Batch(kind, runner, queue, cost, limits, metrics, clock) for kind in StepKind]
        self._step_started: float | None = None

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return sum(batch.num_rows for batch in self._batches)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the caches' buffers."""
        return sum(batch.cache_bytes for batch in self._batches)

    def is_alive(self) -> bool:
        """Says whether the last steps succeeded and none hangs."""
        started = self._step_started
        hangs = started is not None and self._clock() - started > MAX_STEP_SECONDS
        return not hangs and all(batch.num_failures < MAX_FAILURES for batch in self._batches)

    def run(self) -> None:
        """Steps while there is work, sleeps while there is none, until the queue is closed."""
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while self._queue.wait():
            self.step()
            while self._is_running and self._queue.is_open:
                self.step()
        for batch in self._batches:
            batch.drop(NotServing("the server has shut down"))

    def step(self) -> None:
        """Takes one step with the batch of each kind that has any sentences, running or waiting."""
        for batch in self._batches:
            if batch.is_busy:
                self._step_started = self._clock()
                others = [other.footprint for other in self._batches if other is not batch]
                batch.step(reduce(add, others, Footprint()))
                self._step_started = None
                self._metrics.engine_last_step_timestamp_seconds.set_to_current_time()

    @property
    def _is_running(self) -> bool:
        return any(batch.footprint.rows for batch in self._batches)
