"""Shares the cores among the engines of a process, whose lanes may be more than the cores.

Half of the cores' time is shared evenly among the engines that have something to run. The other half belongs to the
engine that asks for the fewest seconds, for all sentences that it runs or that wait for it. The lanes of an engine step
at once while the engine has lately had less than its share. The lanes of other engines let them go first, between two
steps. So a small load notices little of a large one, and an engine that waits is soon within its share. Seconds count,
not rows, because a small load that was once held up has more rows than a large one, whose batches are limited.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from server.averages import SUM_SECONDS, FadingSum

# The longest wait of a lane for its turn. Half, and a large engine interrupts a small one more often. Twice, and the
# callers of an engine that is beyond its share notice each wait.
_MOST_WAIT_SECONDS = 0.4


class Cores:
    """Is shared by the engines of a process. Its gates use it; they hold `changed` meanwhile.

    Attributes:
        at_work: the gate of each lane that has something to run.
        num_beyond: lanes that step although their engines have had their shares.
    """

    def __init__(self, num_cores: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.changed = threading.Condition()
        self.at_work: list[Gate] = []
        self.num_beyond = 0
        self._num_cores = num_cores

    def may_step(self, gate: "Gate") -> bool:
        """Returns whether an engine is within its share, or cores are left beside the engines that are."""
        within = self.within_share()
        return gate in within or sum(each in within for each in self.at_work) + self.num_beyond < self._num_cores

    def within_share(self) -> list["Gate"]:
        """Returns the engines at work that have lately had no more than their shares."""
        gates, all_seconds = set(self.at_work), self._num_cores * SUM_SECONDS
        part = all_seconds / (2 * max(1, len(gates)))
        least = min(gates, key=lambda gate: gate.asked_seconds, default=None)
        return [gate for gate in gates if gate.seconds.value <= part + (gate is least) * all_seconds / 2]


class Gate:
    """Lets the lanes of one engine use the cores. The lanes' threads call it.

    Attributes:
        asked_seconds: of the last turn.
        seconds: of the engine's steps, fading.
    """

    def __init__(self, cores: Cores) -> None:
        self._cores = cores
        self.asked_seconds = 0.0
        self.seconds = FadingSum(cores.clock)

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        """Counts a lane as one that has something to run, during the block."""
        cores = self._cores
        with cores.changed:
            cores.at_work.append(self)
        try:
            yield
        finally:
            with cores.changed:
                cores.at_work.remove(self)
                cores.changed.notify_all()

    @contextlib.contextmanager
    def turn(self, asked_seconds: float) -> Iterator[bool]:
        """Waits until a lane at work may take its turn, which is the block. Yields whether no other engine is at work.

        Args:
            asked_seconds: that a lane would take for one step of everything that the engine runs and that waits.
        """
        cores = self._cores
        with cores.changed:
            self.asked_seconds = asked_seconds
            is_only_engine = set(cores.at_work) <= {self}
            is_beyond = not is_only_engine and self not in cores.within_share()
            if is_beyond:
                cores.changed.wait_for(lambda: cores.may_step(self), _MOST_WAIT_SECONDS)
            cores.num_beyond += is_beyond
        started = cores.clock()
        try:
            yield is_only_engine
        finally:
            with cores.changed:
                cores.num_beyond -= is_beyond
                self.seconds.add(cores.clock() - started)
                cores.changed.notify_all()
