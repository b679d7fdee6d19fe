"""Which engines of a process run anything, and whose turn it is where they have more lanes than there are cores.

Every active engine can count on half an even share of the cores; what is left is for who asks for least: in seconds, of
all that it runs and that waits for it. (Who runs the fewest rows need not be it: a small load that is held up once has
more of them than a large one, as batches are limited, and would go on being held up.) An engine that has had less than
its part of late is modest: its lanes step at once. Those of an engine that has had more leave the cores to modest ones
between two steps, so that a small load notices little of a large one; whoever is left waiting falls below its part, and
is modest itself. A step cannot be interrupted, so that steps are kept short while engines share the cores
(`server.engine.scheduler`).
"""

import contextlib
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

_MEMORY_SECONDS = 2.0  # time constant of what an engine has had
_ACTIVE_PART = 0.01  # of the time of one core; who has had less counts only while a lane runs
_MOST_WAIT_SECONDS = 0.4  # for one step, whatever the others do


class SharingEngine(Protocol):
    """What stands for an engine; hashable by identity."""

    @property
    def asked_seconds(self) -> float:
        """Seconds of a lane for a step of all that it runs and that waits for it."""


@dataclass(slots=True)
class _Use:
    """Of one engine: its lanes that run anything, the most there were, and its seconds of steps, fading."""

    num_lanes: int = 0
    most_lanes: int = 0
    seconds: float = 0.0
    noted: float = 0.0

    def faded(self, now: float) -> float:
        return self.seconds * math.exp((self.noted - now) / _MEMORY_SECONDS)


class BusyEngines:
    """Shared by the engines of a process; told and asked by any thread.

    Args:
        num_cores: that the lanes have.
        clock: seconds.

    Attributes:
        is_shared: whether lanes of more than one engine have run, so that a step is to wait for its `turn`.
    """

    def __init__(self, num_cores: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._num_cores = num_cores
        self._clock = clock
        self._uses: weakref.WeakKeyDictionary[SharingEngine, _Use] = weakref.WeakKeyDictionary()
        self.is_shared = False
        self._changed = threading.Condition()
        self._num_at_work = 0  # engines with lanes that run anything
        self._num_immodest = 0  # lanes that step though their engines have had their share

    @property
    def has_one_at_work(self) -> bool:
        """Whether no engine but one, at most, runs anything."""
        return self._num_at_work <= 1  # asked at every step

    @property
    def is_divided(self) -> bool:
        """Whether several engines have used the cores of late, with more lanes than there are cores."""
        if not self.is_shared:
            return False
        now = self._clock()
        with self._changed:
            recent = self._recent({engine: use.faded(now) for engine, use in self._uses.items()})
            return len(recent) > 1 and sum(self._uses[engine].most_lanes for engine in recent) > self._num_cores

    @contextlib.contextmanager
    def lane(self, engine: SharingEngine) -> Iterator[None]:
        """Counts a lane while it has anything to run."""
        with self._changed:
            use = self._uses.setdefault(engine, _Use())
            use.num_lanes += 1
            use.most_lanes = max(use.most_lanes, use.num_lanes)
            self._num_at_work += use.num_lanes == 1
            self.is_shared = len(self._uses) > 1
        try:
            yield
        finally:
            with self._changed:
                use.num_lanes -= 1
                self._num_at_work -= use.num_lanes == 0
                self._changed.notify_all()

    @contextlib.contextmanager
    def turn(self, engine: SharingEngine) -> Iterator[float]:
        """Waits for a lane's turn, which is the `with` block; yields the seconds that it has waited."""
        came = self._clock()
        with self._changed:
            is_immodest = self._num_at_work > 1 and engine not in self._modest(came)
            if is_immodest:
                self._changed.wait_for(lambda: self._may_step(engine), _MOST_WAIT_SECONDS)
            self._num_immodest += is_immodest
        started = self._clock()
        try:
            yield started - came
        finally:
            with self._changed:
                self._num_immodest -= is_immodest
                use, now = self._uses[engine], self._clock()
                use.seconds, use.noted = use.faded(now) + now - started, now
                self._changed.notify_all()

    def _modest(self, now: float) -> list[SharingEngine]:
        """Returns the engines that have had less than their part of the cores."""
        all_seconds = self._num_cores * _MEMORY_SECONDS
        seconds = {engine: use.faded(now) for engine, use in self._uses.items()}
        at_work = [engine for engine, use in self._uses.items() if use.num_lanes]
        recent = self._recent(seconds)
        part = all_seconds / (2 * max(1, len({*at_work, *recent})))
        least = min(at_work, key=lambda engine: engine.asked_seconds, default=None)
        return [engine for engine in seconds if seconds[engine] <= part + (engine is least) * all_seconds / 2]

    @staticmethod
    def _recent(seconds: dict[SharingEngine, float]) -> list[SharingEngine]:
        """Returns the engines that have had more than next to nothing."""
        return [engine for engine in seconds if seconds[engine] > _ACTIVE_PART * _MEMORY_SECONDS]

    def _may_step(self, engine: SharingEngine) -> bool:
        modest = self._modest(self._clock())
        num_modest = sum(self._uses[other].num_lanes for other in modest)
        return engine in modest or num_modest + self._num_immodest < self._num_cores
