"""Shares the cores among the engines of a process, whose lanes may be more than the cores.

Half of the cores' time is shared evenly among the active engines. The other half belongs to the engine that asks for
the fewest seconds, for all sentences that it runs or that wait for it. The lanes of an engine step at once while the
engine has lately had less than its share. The lanes of other engines let them go first, between two steps. So a small
load notices little of a large one, and an engine that waits is soon within its share. Seconds count, not rows, because
a small load that was once held up has more rows than a large one, whose batches are limited.
"""

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator

from server.averages import FadingSum
from server.engine.gate import Gate, Turn

_MEMORY_SECONDS = 2.0  # time constant of the seconds that an engine has had
_ACTIVE_SECONDS = 0.02  # of steps in that time: an engine with less is active only while a lane of it runs
_MOST_WAIT_SECONDS = 0.4  # of a lane for its turn, whatever other engines do


class _EngineGate:
    """The gate of one engine.

    Attributes:
        num_lanes: that have something to run.
        asked_seconds: of the last turn.
        seconds: of its steps, fading.
    """

    def __init__(self, cores: "Cores", seconds: FadingSum) -> None:
        self._cores = cores
        self.num_lanes = 0
        self.asked_seconds = 0.0
        self.seconds = seconds

    def work(self) -> contextlib.AbstractContextManager[None]:
        return self._cores.work(self)

    def turn(self, asked_seconds: float) -> contextlib.AbstractContextManager[Turn]:
        self.asked_seconds = asked_seconds
        return self._cores.turn(self)


class Cores:
    """Is shared by the engines of a process. Any thread may call it."""

    def __init__(self, num_cores: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._num_cores = num_cores
        self._clock = clock
        self._gates: weakref.WeakSet[_EngineGate] = weakref.WeakSet()
        self._changed = threading.Condition()
        self._num_beyond = 0  # lanes that step although their engines have had their shares

    def new_gate(self) -> Gate:
        """Returns the gate of another engine."""
        gate = _EngineGate(self, FadingSum(_MEMORY_SECONDS, self._clock))
        with self._changed:
            self._gates.add(gate)
        return gate

    @contextlib.contextmanager
    def work(self, gate: _EngineGate) -> Iterator[None]:
        """Counts a lane as one that has something to run, during the block."""
        with self._changed:
            gate.num_lanes += 1
        try:
            yield
        finally:
            with self._changed:
                gate.num_lanes -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def turn(self, gate: _EngineGate) -> Iterator[Turn]:
        """Waits for a lane's turn, which is the block."""
        if len(self._gates) == 1:
            yield Turn()
            return
        came = self._clock()
        with self._changed:
            is_alone = sum(each.num_lanes > 0 for each in self._gates) <= 1
            is_beyond = not is_alone and gate not in self._within_share()
            if is_beyond:
                self._changed.wait_for(lambda: self._may_step(gate), _MOST_WAIT_SECONDS)
            self._num_beyond += is_beyond
        started = self._clock()
        try:
            yield Turn(started - came, is_alone)
        finally:
            with self._changed:
                self._num_beyond -= is_beyond
                gate.seconds.add(self._clock() - started)
                self._changed.notify_all()

    def _active(self) -> list[_EngineGate]:
        """Returns the engines that run something, or have lately had more than `_ACTIVE_SECONDS`."""
        return [gate for gate in self._gates if gate.num_lanes or gate.seconds.value > _ACTIVE_SECONDS]

    def _within_share(self) -> list[_EngineGate]:
        """Returns the engines that have lately had no more than their shares."""
        all_seconds = self._num_cores * _MEMORY_SECONDS
        part = all_seconds / (2 * max(1, len(self._active())))
        at_work = (gate for gate in self._gates if gate.num_lanes)
        least = min(at_work, key=lambda gate: gate.asked_seconds, default=None)
        return [gate for gate in self._gates if gate.seconds.value <= part + (gate is least) * all_seconds / 2]

    def _may_step(self, gate: _EngineGate) -> bool:
        within = self._within_share()
        return gate in within or sum(each.num_lanes for each in within) + self._num_beyond < self._num_cores
