"""How much of the lanes the background has: time of their steps, and rows.

`docs/explanations/overload.md` says which flows are in the background, and why.
"""

import math
from collections.abc import Callable

from server.averages import FadingSum

# Time that the background gets of a lane, as a part of the time that the foreground takes there, or that the lane
# rests. Half, and a flood beside busy tenants stalls; twice, and they notice it.
BACKGROUND_TIME = 0.1
# Part of a lane's rows and caches that the background has beside a foreground. Half, and floods and bulk calls get less
# done; twice, and the foreground waits for their steps.
_SHARE = 0.125
# After so long without a foreground in any lane, the background has `LaneLimits.alone_share`. Half, and requests that
# come now and then find long steps; twice, and a bulk call beside such requests takes longer.
_ALONE_SECONDS = 1.0
_FIRST_SECONDS = 0.25  # that the background is taken to have had before it had any


class Background:
    """Is shared by the lanes of an engine. One thread at a time may change it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seconds = FadingSum(clock), FadingSum(clock)  # of foreground and background
        self._foreground_until = -math.inf  # instant up to which the foreground counts as present

    def note_seconds(self, seconds: float, *, is_background: bool, is_used: bool) -> None:
        """Notes for how long a lane has stepped the foreground or the background; a rest counts as foreground.

        Args:
            is_background: of which of the two.
            is_used: whether a flow is in the background; else the seconds do not count for `pace`.
        """
        if not is_background:
            self._foreground_until = self._clock() + _ALONE_SECONDS
        if is_used:
            self._seconds[is_background].add(seconds)

    @property
    def pace(self) -> float:
        """The part of the time, over 0 to 1, in which lanes have lately stepped the background while it had work."""
        foreground, background = self._seconds[False].value, self._seconds[True].value
        return (background + _FIRST_SECONDS) / (foreground + background + _FIRST_SECONDS)

    def share(self, alone_share: float) -> float:
        """Returns the part of a lane's rows and caches that it may take, over 0 to 1; any thread may ask.

        Args:
            alone_share: the part while there is no foreground.
        """
        return _SHARE if self._clock() < self._foreground_until else alone_share
