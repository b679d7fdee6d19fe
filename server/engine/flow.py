"""`Flow`: as whose the engine counts a request when it shares itself out, a tenant's, say."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

_LONG_WEIGHT = 0.25  # of a flow's weight: half, and a document waits twice as long beside short requests


class FlowId(NamedTuple):
    """Requests with the same id are one flow."""

    name: str
    is_long: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What requests with a claim of their own belong to: flows share the engine by what their sentences cost.

    Attributes:
        name: of the tenant; from a closed set.
        weight: of its share, over 0.
        rank: of this request within the flow: lower ones are served first.
        is_long: whether this is the tenant's flow of long requests, which has a weight of its own.
    """

    name: str = ""
    weight: float = 1.0
    rank: int = 0
    is_long: bool = False

    @property
    def id(self) -> FlowId:
        """By which flows are told apart."""
        return FlowId(self.name, self.is_long)

    def of_long(self) -> Self:
        """Returns the tenant's flow of long requests."""
        return replace(self, is_long=True, weight=self.weight * _LONG_WEIGHT)


ANYONE = Flow()
