"""A filter for log lines that a fault may repeat without end."""

import logging
import threading
import time
from collections.abc import Callable


class RateLimit(logging.Filter):
    """Lets so many records of one line of code pass in each period; the next one that passes says how many did not.

    For loggers whose lines tell of faults: `logger.addFilter(RateLimit())`. What is left out is not counted by level.

    Args:
        most: records of one place in a period, at least 1.
        period_seconds: the length of a period, above 0.
        clock: seconds, monotonic.
    """

    def __init__(
        self, most: int = 5, period_seconds: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._most = most
        self._period_seconds = period_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, int], tuple[float, int]] = {}  # of each place: the period's start, its records

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter.filter`; adds the fact `suppressed` to a record before which others were left out."""
        place = (record.pathname, record.lineno)
        now = self._clock()
        with self._lock:
            start, count = self._counts.get(place, (now, 0))
            suppressed = 0
            if now - start >= self._period_seconds:
                start, suppressed, count = now, max(0, count - self._most), 0
            self._counts[place] = (start, count + 1)
        if suppressed:
            record.facts = {**getattr(record, "facts", {}), "suppressed": suppressed}
        return count < self._most
