"""Runs every call of every front: gives it an id, counts it, writes its log line and catches every error.

- If the task was cancelled from outside, `CancelledError` means that the caller left: it hung up, or its deadline
  passed. Otherwise something in the server raised it, and the call must still be answered, because without an answer
  the caller would wait for ever (issue 29248 of grpc/grpc). Only `Task.cancelling()` tells the two apart.
- An exception that is no `TranslationError` is answered with fixed words, because its own text may quote a user's
  text. The same holds for every `BaseException` that does not end the process: a panic of an extension written in Rust
  is no `Exception`.
"""

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from server.access.tenants import ANONYMOUS, Tenant, caller
from server.errors import Code, DeadlineExceeded, InvalidRequest, NotServing, Overloaded, TranslationError
from server.telemetry.log import add_facts, begin_request, facts
from server.telemetry.metrics import GRPC, Metrics
from server.telemetry.rate_limit import RateLimit
from server.telemetry.tracing import CallTrace, TraceParent, Tracing, current_trace
from server.translation.memory import Holder, holder
from server.translation.pushback import Pushback
from server.translation.request import transit_seconds
from server.translation.running_calls import RunningCalls

logger = logging.getLogger(__name__)

_PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Call:
    """One call, as its front sees it.

    Attributes:
        method: one of `server.telemetry.metrics.METHODS`; any other counts as "other".
        request_id: from `choose_id`.
        has_expired: says whether the call's deadline has passed, or will pass within the given seconds.
        parent: the caller's span; None if the caller sent none.
        is_endless: whether the call may take as long as its caller likes.
        front: one of `server.telemetry.metrics.FRONTS`: which protocol brought the call.
    """

    method: str
    request_id: str
    has_expired: Callable[[float], bool]
    parent: TraceParent | None = None
    is_endless: bool = False
    front: str = GRPC


class Calls:
    """Runs the calls of all fronts.

    Args:
        metrics: are told of each call's start and end.
        running: counts the running calls, and refuses calls while the server shuts down.
        max_seconds: after this time a call is answered DEADLINE_EXCEEDED, whatever it does. It is longer than any
            deadline that the translator gives to requests, so it matters only if an engine hangs.
        tracing: None for no spans.

    Attributes:
        pushback: says when refused callers should come back.
        running: as given.
    """

    def __init__(
        self, metrics: Metrics, running: RunningCalls, max_seconds: float, tracing: Tracing | None = None
    ) -> None:
        self.pushback = Pushback()
        self._metrics = metrics
        self.running = running
        self._max_seconds = max_seconds
        self._tracing = tracing or Tracing()
        self._lines = {code: RateLimit() for code in Code if code is not Code.OK}

    async def run(self, call: Call, answer: Callable[[], Awaitable[_T]]) -> _T:
        """Runs one call to its end.

        Args:
            call: describes the call.
            answer: does the work, and sends the answer.

        Raises:
            TranslationError: the front must answer this error.
            CancelledError: the caller has left, so there is nobody to answer.
        """
        with self.running.call():
            begin_request(call.request_id)
            trace = self._tracing.begin(call.method, call.request_id, call.parent)
            current_trace.set(trace)
            end = self._metrics.start_request(call.method)
            started = time.monotonic()
            code = Code.CANCELLED
            try:
                result = await self._guarded(answer, None if call.is_endless else self._max_seconds)
                code = Code.OK
                return result
            except TranslationError as error:
                code = error.code
                error.is_recorded = True
                _add_reason(error)
                if isinstance(error, Overloaded):
                    self._metrics.access.count_refusal(error.reason)
                raise
            except asyncio.CancelledError:
                if call.has_expired(transit_seconds(time.monotonic() - started)):
                    code = Code.DEADLINE_EXCEEDED
                raise
            finally:
                seconds = time.monotonic() - started
                end(code, seconds, trace.trace_id if trace.is_sampled else None)
                self._metrics.count_front(call.front, code)
                self._metrics.access.count_request(caller.get().name, code)
                if "unread" in facts():
                    self._metrics.unread_messages_total.inc()
                if code is Code.OK and not call.has_expired(0.0):
                    self._metrics.count_goodput(call.method, int(facts().get("target_tokens", 0)))
                trace.end(code)
                # The answer is sent first, because writing a line takes time.
                asyncio.get_running_loop().call_soon(self._log_end, call, code, seconds, trace)

    def _log_end(self, call: Call, code: Code, seconds: float, trace: CallTrace) -> None:
        level = logging.WARNING if code.is_capacity else logging.ERROR if code.is_ours else logging.INFO
        if code in self._lines:
            num_suppressed = self._lines[code].take()  # asked before a record is made, because making one takes time
            if num_suppressed is None:
                self._metrics.log_messages_suppressed_total.inc()
                return
            if num_suppressed:
                add_facts(suppressed=num_suppressed)
        if trace.trace_id is not None:
            add_facts(trace_id=trace.trace_id)
        fields = {
            "method": call.method,
            "front": call.front,
            "code": code.name,
            "seconds": round(seconds, 6),
            **facts(),
        }
        logger.log(level, "request", extra={"facts": fields, "is_limited": True})

    async def _guarded(self, answer: Callable[[], Awaitable[_T]], max_seconds: float | None) -> _T:
        """Returns the answer. Raises TranslationError, or CancelledError if the caller has left."""
        try:
            self.running.check()
            async with asyncio.timeout(max_seconds):
                return await answer()
        except asyncio.CancelledError:
            if _is_cancelled_from_outside():
                raise
            raise NotServing("the server gave up this request; it may be sent again") from None
        except TimeoutError as error:
            message = f"the server's limit of {self._max_seconds:g} seconds for a request is over"
            raise DeadlineExceeded(message) from error
        except (TranslationError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            logger.exception("a request failed by an error of the server's own")
            raise TranslationError("internal error") from error

    def count_other(self, code: Code) -> None:
        """Counts a call over gRPC that came to none of our methods, and how it was answered."""
        self._metrics.start_request("other")(code, 0.0, None)
        self._metrics.count_front(GRPC, code)


def _add_reason(error: TranslationError) -> None:
    """Adds to the log line why the call was refused: our own names and limits, but not the value of the caller."""
    if isinstance(error, InvalidRequest):
        add_facts(field=error.field, rule=error.rule)
    elif isinstance(error, Overloaded):
        add_facts(reason=error.reason)


def let_in(tenant: Tenant, address: str) -> None:
    """Says in the context of a call whose it is, and whose memory it takes: the tenant's, or else the address's.

    Args:
        tenant: who calls.
        address: of the caller, without a port.
    """
    caller.set(tenant)
    is_named = tenant is not ANONYMOUS
    holder.set(Holder(name=tenant.name, weight=tenant.weight) if is_named else Holder(name=address))
    add_facts(tenant=tenant.name)


def choose_id(given: str | bytes | None) -> str:
    """Returns the caller's own id if it is plain, else a new one."""
    return given if isinstance(given, str) and _PLAIN_ID.fullmatch(given) else os.urandom(16).hex()


def _is_cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
