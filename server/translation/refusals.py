"""Refuses a call unread if a call like it has just been refused.

Reading, parsing and weighing a message is much of what a refusal costs, and an overload brings hundreds of calls a
second that are refused for the same cause. So the first refusal of a tenant is remembered while its cause is known to
last (`Overloaded.lasts_seconds`). Meanwhile a call of this tenant is refused unread if the cause would refuse it too:

- Its priority must be no better than the refused one's. The priority is in the message, so the best one that the
  tenant may ask for counts. If that is better, a call is read now and then, and the others are refused all the same.
- It must be due no sooner than the refused call, because the engine serves first what is due first.
- Its deadline must be no later than the refused one's plus the time that the refused caller was told to wait.

Refusals of one priority add up while they last: what lies between two deadlines that were refused would be refused too.

The size of an unread call is not known: a smaller one might have been served. So a cause that depends on the size lasts
only for a part of a second. Then the next message is read.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from server.access.tenants import Priority, Tenant
from server.errors import Overloaded

_LEAST_RETRY_SECONDS = 0.05
# Between two calls of a tenant that are read because their priority may be better than what was refused. Half, and a
# flood's calls that are read take a tenth of a core. Twice, and of a flood's calls half as many of the better ones are
# seen.
_LOOK_SECONDS = 0.01


class _Refusal(NamedTuple):
    """What the last refusals of a tenant tell.

    Until an instant it refuses calls of this priority or a worse one whose deadlines lie between two instants.
    """

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
        clock: gives instants in seconds; deadlines are instants of this clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[str, _Refusal] = {}  # by the names of tenants, which are few
        self._next_look: dict[str, float] = {}  # by the same names: instant from which a call may be read again

    def note(self, tenant: Tenant, priority: Priority, deadline: float, error: Overloaded) -> None:
        """Remembers a refusal, if its cause is known to last, beside those of the same priority that still last.

        Args:
            tenant: the tenant of the refused request.
            priority: the priority of the refused request.
            deadline: instant; infinite for none.
            error: the error that refused it.
        """
        if error.lasts_seconds <= 0:
            return
        now = self._clock()
        is_late = error.reason == "deadline"  # other limits refuse calls with any deadline
        first, last = (deadline, deadline + error.retry_after_seconds) if is_late else (-math.inf, math.inf)
        before = self._last.get(tenant.name)
        if before is not None and now < before.until:
            if before.priority < priority:
                return  # it refuses more calls than this one would
            if before.priority == priority:
                first, last = min(first, before.first_deadline), max(last, before.last_deadline)
        self._last[tenant.name] = _Refusal(
            until=now + error.lasts_seconds,
            priority=priority,
            first_deadline=first,
            last_deadline=last,
            retry=now + error.retry_after_seconds,
            message=f"refused as the last one of its kind was: {error}",
            reason=error.reason,
        )

    def check(self, tenant: Tenant, deadline: float) -> None:
        """Raises Overloaded if a call with this deadline is to be refused unread."""
        last = self._last.get(tenant.name)
        now = self._clock()
        if last is None or now >= last.until or not last.first_deadline <= deadline <= last.last_deadline:
            return
        if tenant.priority < last.priority and now >= self._next_look.get(tenant.name, -math.inf):
            self._next_look[tenant.name] = now + _LOOK_SECONDS
            return
        raise Overloaded(last.message, last.reason, max(last.retry - now, _LEAST_RETRY_SECONDS))
