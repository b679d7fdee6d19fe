"""A flow: requests that share one claim on the engine, such as the usual requests of one tenant."""

from dataclasses import dataclass, field, replace
from typing import Self

# Of the tenant's weight, for its long requests. Half, and a document takes twice as long beside short requests. Twice,
# and it slows them.
_LONG_WEIGHT = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The flow of one request. Flows share the engine by what their sentences cost.

    Requests are of one flow if their flows are equal: the weight and the rank do not count for that.

    Attributes:
        name: of the tenant; from a closed set.
        is_long: whether this is the tenant's flow of long requests, or that of its bulk calls.
        is_bulk: whether this is the tenant's flow of bulk calls, which is always in the background.
        weight: of the flow's share, over 0.
        rank: of this request within the flow; lower ranks go first.
        is_begun: whether this is what a request that is half done still needs. A full queue does not refuse it.
    """

    name: str = ""
    is_long: bool = False
    is_bulk: bool = False
    weight: float = field(default=1.0, compare=False)
    rank: int = field(default=0, compare=False)
    is_begun: bool = field(default=False, compare=False)

    def __hash__(self) -> int:
        # All fields would take twice as long, and each request has the flows of all others looked up.
        return hash(self.name)

    def of_long(self) -> Self:
        """Returns the tenant's flow of long requests."""
        return self if self.is_long else replace(self, is_long=True, weight=self.weight * _LONG_WEIGHT)

    def of_bulk(self) -> Self:
        """Returns the tenant's flow of bulk calls."""
        return replace(self.of_long(), is_bulk=True)

    def first(self) -> Self:
        """Returns the flow of what a request that is half done still needs: it goes before requests of its rank."""
        return replace(self, rank=self.rank - 1, is_begun=True)


ANYONE = Flow()
