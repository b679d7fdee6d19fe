"""Fair shares of something scarce, by weights, among the names that hold some of it or have lately asked for it."""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


@dataclass(slots=True)
class _Claim:
    """What a name holds, and the instant of its last request."""

    weight: float
    held: int = 0
    asked: float = -math.inf


class Shares(Generic[Name]):
    """Knows which names are active. One thread at a time may use it.

    Args:
        active_seconds: for which a name keeps its share after its last request.
    """

    def __init__(self, active_seconds: float, clock: Callable[[], float]) -> None:
        self._active_seconds = active_seconds
        self._clock = clock
        # The name that has asked last is at the end. Behind it may be names that asked long ago, but hold something.
        self._claims: OrderedDict[Name, _Claim] = OrderedDict()

    def ask(self, name: Name, weight: float) -> None:
        """Notes a request of a name whose share has this weight, over 0."""
        now = self._claim(name, weight).asked = self._clock()
        self._claims.move_to_end(name)
        while next(iter(self._claims.values())).asked < now - self._active_seconds:
            oldest, claim = self._claims.popitem(last=False)
            if claim.held > 0:  # in front it would keep those behind it
                self._claims[oldest] = claim

    def hold(self, name: Name, weight: float, amount: int) -> None:
        """Notes that a name holds more by this amount, or less. It keeps its share until it holds nothing."""
        self._claim(name, weight).held += amount

    def held(self, name: Name) -> int:
        """Returns what a name holds."""
        return self._claims[name].held if name in self._claims else 0

    def active(self) -> Iterator[tuple[Name, float, int]]:
        """Yields each active name, its weight, and what it holds."""
        since = self._clock() - self._active_seconds
        for name, claim in self._claims.items():
            if claim.held > 0 or claim.asked >= since:
                yield name, claim.weight, claim.held

    def share(self, name: Name, weight: float) -> float:
        """Returns the share, over 0 to 1, of a name with this weight; 1 if no other name is active."""
        return weight / (weight + sum(each for other, each, _ in self.active() if other != name))

    def _claim(self, name: Name, weight: float) -> _Claim:
        claim = self._claims.setdefault(name, _Claim(weight))
        claim.weight = weight
        return claim


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
