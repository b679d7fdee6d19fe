"""A flow: requests that share one claim on the engine, such as the requests of one tenant."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

# Of the tenant's weight, for its long requests. Half, and a document takes twice as long beside short requests. Twice,
# and it slows them.
_LONG_WEIGHT = 0.25


class FlowId(NamedTuple):
    """Requests with equal ids are one flow."""

    name: str
    is_long: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The flow of one request. Flows share the engine by what their sentences cost.

    Attributes:
        name: of the tenant; from a closed set.
        weight: of the flow's share, over 0.
        rank: of this request within the flow; lower ranks go first.
        is_long: whether this is the tenant's flow of long requests.
    """

    name: str = ""
    weight: float = 1.0
    rank: int = 0
    is_long: bool = False

    @property
    def id(self) -> FlowId:
        """Equal for requests of one flow."""
        return FlowId(self.name, self.is_long)

    def of_long(self) -> Self:
        """Returns the tenant's flow of long requests."""
        return replace(self, is_long=True, weight=self.weight * _LONG_WEIGHT)


ANYONE = Flow()
