"""When refused callers are told to come back: one after the other.

Each refusal says when its cause may be over. Told that alone, all whom one cause has hit come back at once, most of
them to be refused again, and that costs the event loop a millisecond each. So those who come back are spaced, like
cells by the generic cell rate algorithm (ITU-T I.371), as far as that makes nobody wait for long.
"""

import time
from collections.abc import Callable

_RETURNS_PER_SECOND = 50.0  # some 5 % of a core, should all of them be refused again
_LONGEST_SECONDS = 3.0  # that this may add: who is gone for good keeps a place, too


class Pushback:
    """Used on the event loop's thread.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = 0.0  # instant at which nobody has been told to come back yet

    def seconds(self, least: float) -> float:
        """Returns the seconds after which one more caller should come back, at least as many as given."""
        now = self._clock()
        place = max(self._next, now)
        self._next = min(place + 1.0 / _RETURNS_PER_SECOND, now + _LONGEST_SECONDS)
        return max(least, place - now)
