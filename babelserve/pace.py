"""How fast a job asks its server: no faster than that answers, and patiently while it is busy or away.

As TCP finds its rate (additive increase, multiplicative decrease; V. Jacobson, 1988): a refusal for want of room halves
the requests in flight, and then the lines of a request; every answer lets a little more fly. What the server says of
when to come back holds for all. Requests go in the order of their lines, as the oldest is what the output waits for.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from babelserve.errors import DeadlineExceeded, Overloaded, TlsFailed, TranslationError

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.2, 2.0
_QUIET_SECONDS = 10.0  # that a busy server may go without an answer before anybody is told


class Pace:
    """Shared by the threads of a job.

    Args:
        in_flight: most requests at a time.
        batch_lines: most lines of a request.
        patience_seconds: of failures without an answer among them, after which the job gives up; 0: at the first.
        tell: takes a line for the user, when waiting begins.
        clock: gives instants in seconds.

    Attributes:
        batch_lines: lines that a request may have by what the server has taken; 1 to the given ones.
    """

    def __init__(
        self,
        *,
        in_flight: int,
        batch_lines: int,
        patience_seconds: float,
        tell: Callable[[str], object] = lambda message: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.batch_lines = batch_lines
        self._most_in_flight = in_flight
        self._most_lines = batch_lines
        self._patience_seconds = patience_seconds
        self._tell = tell
        self._clock = clock
        self._changed = threading.Condition()
        self._window = float(in_flight)
        self._running: set[int] = set()
        self._waiting: set[int] = set()
        self._not_before = self._slowed = -float("inf")  # instants: of the next request, of the last slowing
        self._trouble_since: float | None = None  # instant of the first failure after the last answer
        self._num_failures = 0  # since then
        self._has_told = False
        self._is_open = True

    @property
    def is_patient(self) -> bool:
        """Whether what fails for now is tried again."""
        return self._patience_seconds > 0

    @contextmanager
    def turn(self, number: int) -> Iterator[float]:
        """Waits until a request may go, and yields the instant of its start.

        Args:
            number: of the request, unlike that of any other under way; the lowest goes first.

        Raises:
            InterruptedError: the job is over.
        """
        with self._changed:
            self._waiting.add(number)
            try:
                while (seconds := self._seconds_to_wait(number)) is None or seconds > 0:
                    self._changed.wait(seconds)
            finally:
                self._waiting.discard(number)
                self._changed.notify_all()
            self._running.add(number)
        try:
            yield self._clock()
        finally:
            with self._changed:
                self._running.discard(number)
                self._changed.notify_all()

    def answered(self) -> None:
        """Takes note that the server has answered a request."""
        with self._changed:
            self._trouble_since = None
            self._num_failures = 0
            self._has_told = False
            if self._window < self._most_in_flight:
                self._window = min(self._most_in_flight, self._window + 1 / self._window)
            elif self.batch_lines < self._most_lines:
                self.batch_lines += 1
            self._changed.notify_all()

    def failed(self, error: TranslationError, started: float) -> None:
        """Slows down if the server was full, and lets nobody go before the request may be sent again.

        Args:
            error: that a request has met, and that may pass.
            started: instant of the request's start; what was sent before the last slowing says nothing new.

        Raises:
            TranslationError: the error itself, if it will not pass, or the job is over, or patience is, or will be.
        """
        with self._changed:
            now = self._clock()
            is_full = isinstance(error, Overloaded | DeadlineExceeded)
            if is_full and started >= self._slowed:
                self._slow_down(now)
            wait = error.retry_after_seconds or 0.0
            if now >= self._not_before:  # it is not one of many that have met the same
                if error.retry_after_seconds is None:
                    wait = min(_FIRST_WAIT_SECONDS * 2 ** min(self._num_failures, 10), _LONGEST_WAIT_SECONDS)
                self._num_failures += 1
            if self._trouble_since is None:
                self._trouble_since = now
            left = self._trouble_since + self._patience_seconds - now
            is_over = not self._is_open or not self.is_patient
            if is_over or wait > left or isinstance(error, TlsFailed):
                raise error
            self._not_before = max(self._not_before, now + wait)
            if not self._has_told and (not is_full or now + wait - self._trouble_since >= _QUIET_SECONDS):
                self._has_told = True
                self._tell(f"{error.code.name}: {error}; waiting for up to {left:.0f} s")
            self._changed.notify_all()

    def close(self) -> None:
        """Lets nobody go any more."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()

    def _slow_down(self, now: float) -> None:
        self._slowed = now
        if self._window > 1:
            self._window = max(1.0, self._window / 2)
        else:
            self.batch_lines = max(1, self.batch_lines // 2)

    def _seconds_to_wait(self, number: int) -> float | None:
        """Returns the seconds until a request may go; None: until something changes."""
        if not self._is_open:
            raise InterruptedError("the job is over")
        if len(self._running) >= int(self._window) or number > min(self._waiting):
            return None
        return max(0.0, self._not_before - self._clock())
