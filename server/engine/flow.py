"""`Flow`: the tenant, say, as whose the engine counts a request when it shares itself out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What requests with a claim of their own belong to, such as a tenant's: flows share the engine by their costs.

    Attributes:
        name: flows with the same name are one; from a closed set.
        weight: of its share, over 0.
        rank: of this request within the flow: lower ones are served first.
        num_calls: that this request stands for: itself, and those before it that were refused unread.
    """

    name: str = ""
    weight: float = 1.0
    rank: int = 0
    num_calls: int = 1


ANYONE = Flow()
