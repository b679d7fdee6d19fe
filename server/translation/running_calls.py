"""The calls that are running. At its end the server waits until there are none."""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterator

from server.errors import NotServing


class RunningCalls:
    """Counts the calls of all fronts, on the event loop's thread.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_end = -math.inf
        self._is_refusing = False
        self._num_calls = 0
        self._num_running = 0
        self._warnings: set[Callable[[], None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Counts one call, from its arrival to its end."""
        self._num_calls += 1
        self._num_running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._num_running -= 1
            self._last_end = self._clock()
            if not self._num_running:
                self._idle.set()

    @property
    def idle_seconds(self) -> float:
        """The seconds for which no call has run; infinite if none has ever run."""
        return 0.0 if self._num_running else self._clock() - self._last_end

    def refuse(self) -> None:
        """Refuses all further calls."""
        self._is_refusing = True
        for warn in self._warnings:
            warn()

    def check(self) -> None:
        """Raises NotServing once `refuse` has been called."""
        if self._is_refusing:
            raise NotServing("the server is shutting down")

    @contextlib.contextmanager
    def warned(self, warn: Callable[[], None]) -> Iterator[None]:
        """Has `refuse` call a function if that comes before the block is left: for calls that would never end.

        Raises:
            NotServing: `refuse` has been called already.
        """
        self.check()
        self._warnings.add(warn)
        try:
            yield
        finally:
            self._warnings.discard(warn)

    async def wait_until_idle(self) -> None:
        """Returns when no call runs."""
        await self._idle.wait()

    async def wait_until_quiet(self, quiet_seconds: float) -> None:
        """Returns when no call has run for `quiet_seconds`."""
        num_calls = -1
        while num_calls != self._num_calls or self._num_running:
            await self._idle.wait()
            num_calls = self._num_calls
            await asyncio.sleep(quiet_seconds)
