"""Whose turn it is where the engines of a process have more lanes than there are cores.

Every active engine can count on half an even share of the cores. The other half is for the engine that asks for the
fewest seconds, in all that it runs and that waits for it. An engine that has had less than its part lately is within
its share, and its lanes step at once. Lanes of the other engines let those go first between two steps. So a small load
notices little of a large one, and an engine that waits is soon within its share itself. Fewest seconds, not fewest
rows: a small load that was held up once has more rows than a large one, whose batches are limited.
"""

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator

from server.averages import FadingSum
from server.engine.gate import Gate, Turn

_MEMORY_SECONDS = 2.0  # time constant of what an engine has had
_ACTIVE_SECONDS = 0.02  # of steps in that time: an engine that has had less counts only while a lane of it runs
_MOST_WAIT_SECONDS = 0.4  # for one step, whatever the others do


class _EngineGate:
    """The gate of one engine.

    Attributes:
        num_lanes: that have anything to run.
        asked_seconds: as told at the last turn.
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
    """Shared by the engines of a process; used by any thread.

    Args:
        num_cores: that the lanes have.
        clock: gives instants in seconds.
    """

    def __init__(self, num_cores: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._num_cores = num_cores
        self._clock = clock
        self._gates: weakref.WeakSet[_EngineGate] = weakref.WeakSet()
        self._changed = threading.Condition()
        self._num_beyond = 0  # lanes that step although their engines are beyond their shares

    def new_gate(self) -> Gate:
        """Returns the gate of one more engine."""
        gate = _EngineGate(self, FadingSum(_MEMORY_SECONDS, self._clock))
        with self._changed:
            self._gates.add(gate)
        return gate

    @contextlib.contextmanager
    def work(self, gate: _EngineGate) -> Iterator[None]:
        """Counts a lane while it has anything to run."""
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
        """Waits for a lane's turn, which is the `with` block."""
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
        """Returns the engines that run anything, or have had more than next to nothing."""
        return [gate for gate in self._gates if gate.num_lanes or gate.seconds.value > _ACTIVE_SECONDS]

    def _within_share(self) -> list[_EngineGate]:
        """Returns the engines that have had no more than their part of the cores."""
        all_seconds = self._num_cores * _MEMORY_SECONDS
        part = all_seconds / (2 * max(1, len(self._active())))
        at_work = (gate for gate in self._gates if gate.num_lanes)
        least = min(at_work, key=lambda gate: gate.asked_seconds, default=None)
        return [gate for gate in self._gates if gate.seconds.value <= part + (gate is least) * all_seconds / 2]

    def _may_step(self, gate: _EngineGate) -> bool:
        within = self._within_share()
        return gate in within or sum(each.num_lanes for each in within) + self._num_beyond < self._num_cores
