"""A quota by cost: what one tenant may use of the engine over time."""

import time
from collections.abc import Callable


class TokenBucket:
    """Fills at a steady rate up to its burst, and is emptied by what is taken; for one thread.

    What costs more than the burst is let through when the bucket is full, and leaves a debt: else it never could be.

    Args:
        rate: cost that comes in per second; over 0. The unit of cost is a second of one engine lane.
        burst: most that it holds; over 0. It starts full.
        clock: gives the instant in seconds, and never goes back.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._level = burst
        self._filled = clock()

    def take(self, cost: float) -> float:
        """Takes a cost if there is enough.

        Args:
            cost: at least 0; 0 asks whether there is a debt.

        Returns:
            0 if it was taken; else the seconds until it could be, and nothing was.
        """
        now = self._clock()
        self._level = min(self.burst, self._level + (now - self._filled) * self.rate)
        self._filled = now
        missing = min(cost, self.burst) - self._level
        if missing > 0:
            return missing / self.rate
        self._level -= cost
        return 0.0

    def give_back(self, cost: float) -> None:
        """Undoes a `take` of something that was not done after all."""
        self._level = min(self.burst, self._level + cost)
