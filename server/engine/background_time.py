"""How much of the lanes' time steps have that give way to others."""

import math
from collections.abc import Callable

_MOST_OWED_SECONDS = 0.1
_MOST_AHEAD_SECONDS = 2.0
_LEAST_REST = 0.1  # of the time, that is left to the others
_MEMORY_SECONDS = 2.0
_GUESS_SECONDS = 0.25  # that a guess counts for, beside what has been seen


class BackgroundTime:
    """Keeps an account of a lane's seconds while both kinds of steps are wanted.

    Steps that give way are taken when no others are wanted, and all the same as soon as they have had less than their
    share of the time. What they have had ahead counts for a while.
    """

    def __init__(self) -> None:
        self._owed_seconds = 0.0

    @property
    def is_due(self) -> bool:
        """Whether they have had less than their share."""
        return self._owed_seconds > 0

    def note_others(self, seconds: float, share: float) -> None:
        """Notes steps of the others.

        Args:
            seconds: that they took.
            share: of the time, that those have who had to wait meanwhile, 0 to 1.
        """
        owed = self._owed_seconds + seconds * share / max(1.0 - share, _LEAST_REST)
        self._owed_seconds = min(owed, _MOST_OWED_SECONDS)

    def note(self, seconds: float) -> None:
        """Notes steps that give way."""
        self._owed_seconds = max(self._owed_seconds - seconds, -_MOST_AHEAD_SECONDS)


class MeasuredPart:
    """Measures what part of the lanes' time those steps have, while they are wanted. It forgets within seconds.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seconds = 0.0, 0.0  # of all steps, and of those that give way; fading
        self._noted = clock()

    def note(self, seconds: float, *, is_background: bool) -> None:
        """Notes a lane's steps of one kind, and that others are wanted if they are not the ones that give way."""
        all_seconds, background_seconds = self._faded()
        self._seconds = all_seconds + seconds, background_seconds + (seconds if is_background else 0.0)
        self._noted = self._clock()

    def estimate(self, guess: float) -> float:
        """Returns the part, 0 to 1: a guess where little has been seen of late."""
        all_seconds, background_seconds = self._faded()
        return (background_seconds + guess * _GUESS_SECONDS) / (all_seconds + _GUESS_SECONDS)

    def _faded(self) -> tuple[float, float]:
        left = math.exp((self._noted - self._clock()) / _MEMORY_SECONDS)
        all_seconds, background_seconds = self._seconds
        return all_seconds * left, background_seconds * left
