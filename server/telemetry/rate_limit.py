"""Bounds how often the same thing is logged: a fault that repeats must not fill a disk, or take the processor."""

import logging
import threading
import time
from collections.abc import Callable

from server.telemetry.metrics import Metrics

BURST = 50  # records at once, from one place in the code
PER_SECOND = 5.0  # after that


class RateLimit:
    """A token bucket; `take` may be called from any thread.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = float(BURST)
        self._filled = clock()
        self._num_refused = 0

    def take(self) -> int | None:
        """Returns how many were refused since the last that was allowed; None if this one is refused."""
        with self._lock:
            now = self._clock()
            self._tokens = min(BURST, self._tokens + (now - self._filled) * PER_SECOND)
            self._filled = now
            if self._tokens < 1:
                self._num_refused += 1
                return None
            self._tokens -= 1
            num_refused, self._num_refused = self._num_refused, 0
            return num_refused


class RepeatedRecords(logging.Filter):
    """Lets warnings and errors through as often as `RateLimit` allows, for each place in the code that logs them.

    The next record of a place says in `suppressed` how many are missing. Lesser levels pass: requests that succeed
    have a line each, and so do those with `extra={"is_limited": True}`: who logs them asked a `RateLimit` before.

    Args:
        metrics: counts what is left out.
        clock: as of `RateLimit`.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._metrics = metrics
        self._clock = clock
        self._limits: dict[tuple[str, int], RateLimit] = {}  # as many as there are places: not by message

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter.filter`."""
        if record.levelno < logging.WARNING or getattr(record, "is_limited", False):
            return True
        place = (record.pathname, record.lineno)
        if place not in self._limits:
            self._limits[place] = RateLimit(self._clock)
        num_refused = self._limits[place].take()
        if num_refused is None:
            self._metrics.log_messages_suppressed_total.inc()
            return False
        if num_refused:
            vars(record)["facts"] = {**getattr(record, "facts", {}), "suppressed": num_refused}
        return True
