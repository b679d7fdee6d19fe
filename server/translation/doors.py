"""Who is refused before a message is read: a tenant of whom a like request has just been refused.

To take over, parse and weigh a message is a good part of what a refusal costs, and an overload brings hundreds a
second that are refused for the same cause. So the first of them closes its tenant's door while the cause is known to
last (`Overloaded.lasts_seconds`), to those calls alone that it would hit as well:

- which may have no better priority than was refused; what they do ask for stands in the message;
- which are due no sooner, since what is due sooner is served sooner;
- whose deadlines are no later than what the refused one was told to wait would make of its own.

What nobody knows is how much such a call asks for: one that asks for less might have been served. So causes that depend
on that last for part of a second only, after which the next call's message is read.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from server.access.tenants import Priority, Tenant
from server.errors import Overloaded

_LEAST_RETRY_SECONDS = 0.05


class _Closed(NamedTuple):
    """A door that is closed until an instant, to calls of a priority or worse whose deadlines lie between two."""

    until: float
    priority: Priority
    first_deadline: float
    last_deadline: float
    retry: float  # instant
    message: str
    reason: str


class Doors:
    """One for each tenant, on the event loop's thread.

    Args:
        clock: gives the instants that deadlines are.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._closed: dict[str, _Closed] = {}  # by tenants' names, which are few

    def close(self, tenant: Tenant, priority: Priority, deadline: float, error: Overloaded) -> None:
        """Notes that a request has been refused: closes its tenant's door, if the cause is known to last.

        Args:
            tenant: that asked.
            priority: of the request.
            deadline: instant; infinite for never.
            error: that answered it.
        """
        if error.lasts_seconds <= 0:
            return
        now = self._clock()
        is_late = error.reason == "deadline"  # other limits refuse whatever the deadline is
        self._closed[tenant.name] = _Closed(
            until=now + error.lasts_seconds,
            priority=priority,
            first_deadline=deadline if is_late else -math.inf,
            last_deadline=deadline + error.retry_after_seconds if is_late else math.inf,
            retry=now + error.retry_after_seconds,
            message=f"refused as the last one of its kind was: {error}",
            reason=error.reason,
        )

    def check(self, tenant: Tenant, deadline: float) -> None:
        """Raises Overloaded if a call with this deadline would be refused, whatever its message says."""
        closed = self._closed.get(tenant.name)
        if closed is None or tenant.priority < closed.priority:
            return
        now = self._clock()
        if now < closed.until and closed.first_deadline <= deadline <= closed.last_deadline:
            raise Overloaded(closed.message, closed.reason, max(closed.retry - now, _LEAST_RETRY_SECONDS))
