"""Those who share a server: what each may have of it."""

import enum
from contextvars import ContextVar
from dataclasses import dataclass, field

from server.access.token_bucket import TokenBucket
from server.errors import Overloaded

_KNOWN_SECONDS = 0.1  # for which a used-up quota refuses the tenant's next calls too; they may cost less


class Priority(enum.IntEnum):
    """How urgent a request is; the smaller the number, the sooner its turn."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Somebody whose requests are counted together.

    Attributes:
        name: plain, unique; a label of metrics and a field of the log.
        weight: its share of a busy server against that of others; over 0.
        priority: the best that its requests may have.
        bucket: its quota; None for none.
    """

    name: str
    weight: float = 1.0
    priority: Priority = Priority.NORMAL
    bucket: TokenBucket | None = field(default=None, compare=False)

    def charge(self, cost: float) -> None:
        """Takes a request's cost, in seconds of one lane, from the quota; 0 to find out whether it is used up.

        Raises:
            Overloaded: the quota is used up.
        """
        wait = self.bucket.take(cost) if self.bucket else 0.0
        if wait > 0:
            raise Overloaded(f"the quota of tenant {self.name} is used up", "quota", wait, min(wait, _KNOWN_SECONDS))

    def give_back(self, cost: float) -> None:
        """Gives back the cost of a request that the engine did not take."""
        if self.bucket:
            self.bucket.give_back(cost)


ANONYMOUS = Tenant(name="anonymous", priority=Priority.HIGH)  # everybody, where nobody has to say who they are

# Whose call this context serves; a front sets it when it lets the call in.
caller: ContextVar[Tenant] = ContextVar("caller", default=ANONYMOUS)
