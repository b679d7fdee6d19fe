"""Averages that forget old observations, by their number or by their age."""

import math
from collections.abc import Callable

# Observations after which a mean forgets. Half, and forecasts follow chance; twice, and they lag behind.
_MEMORY = 64
# Time constant of sums. Half, and forecasts jump, and an engine that pauses looks like one that asks for little. Twice,
# and flows and engines are judged by what they had long ago.
SUM_SECONDS = 2.0


class FadingMean:
    """A mean that forgets exponentially; the mean of the first observations is the plain one.

    Args:
        value: before the first observation.
    """

    def __init__(self, value: float) -> None:
        self.value = value
        self._count = 0

    def add(self, value: float) -> None:
        """Adds an observation."""
        self._count = min(self._count + 1, _MEMORY)
        self.value += (value - self.value) / self._count


class FadingSum:
    """A sum whose terms fade exponentially with their age."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sum = 0.0
        self._added = 0.0  # instant

    def add(self, value: float) -> None:
        """Adds a term."""
        self._sum = self.value + value
        self._added = self._clock()

    @property
    def value(self) -> float:
        """The sum of the terms, each as far as it has not faded."""
        return self._sum * math.exp((self._added - self._clock()) / SUM_SECONDS)
