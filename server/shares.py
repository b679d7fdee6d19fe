"""Fair shares of something scarce, by weights, among the names that hold some of it or have lately asked for it."""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


class Shares(Generic[Name]):
    """Knows which names are active. One thread at a time may use it.

    Args:
        active_seconds: for which a name keeps its share after its last request.
    """

    def __init__(self, active_seconds: float, clock: Callable[[], float]) -> None:
        self._active_seconds = active_seconds
        self._clock = clock
        self._weights: dict[Name, float] = {}  # of the active names
        self._asked: OrderedDict[Name, float] = OrderedDict()  # instants of their last requests, the latest at the end
        self._holds: Counter[Name] = Counter()

    def ask(self, name: Name, weight: float) -> None:
        """Notes a request of a name whose share has this weight, over 0."""
        self._weights[name] = weight
        self._asked[name] = self._clock()
        self._asked.move_to_end(name)
        while not self._is_recent(oldest := next(iter(self._asked))):
            del self._asked[oldest]
            self._forget(oldest)

    def hold(self, name: Name, weight: float) -> None:
        """Notes that a name holds one thing more. It keeps its share until it has released all of them."""
        self._weights[name] = weight
        self._holds[name] += 1

    def release(self, name: Name) -> None:
        """Notes that a name holds one thing less."""
        self._holds[name] -= 1
        if not self._holds[name]:
            del self._holds[name]
            self._forget(name)

    def weights(self) -> dict[Name, float]:
        """Returns the weight of each active name."""
        return {name: self._weights[name] for name in self._holds.keys() | filter(self._is_recent, self._asked)}

    def share(self, name: Name, weight: float) -> float:
        """Returns the share, over 0 to 1, of a name with this weight; 1 if no other name is active."""
        return weight / (weight + sum(each for other, each in self.weights().items() if other != name))

    def _is_recent(self, name: Name) -> bool:
        return self._asked[name] >= self._clock() - self._active_seconds

    def _forget(self, name: Name) -> None:
        if name not in self._holds and name not in self._asked:
            del self._weights[name]


def fair_level(capacity: float, demands: Iterable[tuple[float, float]]) -> float:
    """Returns the level of a max-min fair sharing (Bertsekas and Gallager, Data Networks, 6.5.2).

    Each demand gets what it asks, but no more than the level times its weight.

    Args:
        demands: what each asks, and its weight, over 0.

    Returns:
        The level; infinite if there is enough for all.
    """
    left, ordered = capacity, sorted(demands, key=lambda each: each[0] / each[1])
    weights = sum(weight for _, weight in ordered)
    for asked, weight in ordered:
        if asked * weights > left * weight:
            return left / weights
        left -= asked
        weights -= weight
    return math.inf
