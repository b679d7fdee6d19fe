"""What refusals tell of the next calls: a call is refused unread if one like it has just been refused.

To take over, parse and weigh a message is a good part of what a refusal costs, and an overload brings hundreds a
second that are refused for the same cause. So the first one of a tenant is remembered while the cause is known to last
(`Overloaded.lasts_seconds`). Meanwhile the tenant's next calls are refused that the cause would hit as well:

- they may have no better priority than was refused; what they do ask for stands in the message;
- they are due no sooner, since what is due sooner is served sooner;
- their deadlines are no later than what the refused one was told to wait would make of its own.

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


class _Refusal(NamedTuple):
    """What refuses calls until an instant: those of a priority or worse whose deadlines lie between two."""

    until: float
    priority: Priority
    first_deadline: float
    last_deadline: float
    retry: float  # instant
    message: str
    reason: str


class Refusals:
    """The last refusal of each tenant, on the event loop's thread.

    Args:
        clock: gives the instants that deadlines are.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[str, _Refusal] = {}  # by tenants' names, which are few

    def note(self, tenant: Tenant, priority: Priority, deadline: float, error: Overloaded) -> None:
        """Notes that a request has been refused, if the cause is known to last.

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
        self._last[tenant.name] = _Refusal(
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
        last = self._last.get(tenant.name)
        if last is None or tenant.priority < last.priority:
            return
        now = self._clock()
        if now < last.until and last.first_deadline <= deadline <= last.last_deadline:
            raise Overloaded(last.message, last.reason, max(last.retry - now, _LEAST_RETRY_SECONDS))
