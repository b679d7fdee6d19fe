"""Tells refused callers when to come back: one after the other.

Each refusal says when its cause may be over. With that time alone, all callers that one cause has hit would come back
at once, and most of them would be refused again, which costs the event loop time. So their returns are spaced, like
cells by the generic cell rate algorithm (ITU-T I.371), as long as no caller has to wait much longer for it.
"""

import time
from collections.abc import Callable

_RETURNS_PER_SECOND = 50.0  # refusing all of them again takes about a twentieth of a core
_LONGEST_SECONDS = 3.0  # that spacing may add; a caller that never comes back has a place, too


class Pushback:
    """Spaces the returns of refused callers, on the event loop's thread.

    All fronts share one.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = 0.0  # first instant at which no caller was told to come back

    def seconds(self, least: float) -> float:
        """Returns the seconds after which one more caller should come back, at least `least`."""
        now = self._clock()
        place = max(self._next, now)
        self._next = min(place + 1.0 / _RETURNS_PER_SECOND, now + _LONGEST_SECONDS)
        return max(least, place - now)
