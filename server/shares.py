"""Fair shares of something scarce, by weights, among the names that hold some of it or have lately asked for it."""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


@dataclass(slots=True)
class _Claim:
    """What a name holds, and the weight of its share."""

    weight: float = 0.0
    held: int = 0


class Shares(Generic[Name]):
    """Knows which names are active. One thread at a time may use it.

    Args:
        active_seconds: for which a name keeps its share after its last request.
    """

    def __init__(self, active_seconds: float, clock: Callable[[], float]) -> None:
        self._active_seconds = active_seconds
        self._clock = clock
        self._claims: dict[Name, _Claim] = {}  # of names that hold something or are in `_asked`
        self._asked: OrderedDict[Name, float] = OrderedDict()  # instants of last requests, the oldest first
        self._weight = 0.0  # of all claims: they may be thousands, and are added up for no request

    def ask(self, name: Name, weight: float) -> None:
        """Notes a request of a name whose share has this weight, over 0."""
        self._claim(name, weight)
        self._asked[name] = self._clock()
        self._asked.move_to_end(name)
        self._forget()

    def hold(self, name: Name, weight: float, amount: int) -> None:
        """Notes that a name holds more by this amount, or less. It keeps its share until it holds nothing."""
        self._claim(name, weight).held += amount
        self._drop_unless_active(name)

    def held(self, name: Name) -> int:
        """Returns what a name holds."""
        return self._claims[name].held if name in self._claims else 0

    def active(self) -> Iterator[tuple[Name, float, int]]:
        """Yields each active name, its weight, and what it holds."""
        self._forget()
        for name, claim in self._claims.items():
            yield name, claim.weight, claim.held

    def share(self, name: Name, weight: float) -> float:
        """Returns the share, over 0 to 1, of a name with this weight; 1 if no other name is active."""
        self._forget()
        own = self._claims[name].weight if name in self._claims else 0.0
        return weight / (weight + self._weight - own)

    def _claim(self, name: Name, weight: float) -> _Claim:
        claim = self._claims.setdefault(name, _Claim())
        self._weight += weight - claim.weight
        claim.weight = weight
        return claim

    def _forget(self) -> None:
        """Forgets requests that are too old to count."""
        oldest = self._clock() - self._active_seconds
        while self._asked and next(iter(self._asked.values())) < oldest:
            self._drop_unless_active(self._asked.popitem(last=False)[0])

    def _drop_unless_active(self, name: Name) -> None:
        if name not in self._asked and not self._claims[name].held:
            self._weight -= self._claims.pop(name).weight
            if not self._claims:
                self._weight = 0.0  # without the rounding of sums


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
