"""Round every call: its id, its counts, one log line at its end, and the net that catches every error.

- The id is the caller's `x-request-id` if that is plain, else a new one. It comes back in the initial metadata or, when
  a call fails, in the trailing metadata: initial metadata commits a call, and gRPC clients retry no committed call.
- `CancelledError` means that the caller left (hung up, or its deadline passed) if the task was cancelled from outside;
  otherwise the server's own doing raised it, and an answer is due: without one the caller would wait for ever (issue
  29248 of grpc/grpc). `Task.cancelling()` alone tells the two apart.
- An exception that is no `TranslationError` is answered with fixed words: gRPC would send its text, and any user's text
  that it quotes. So is every `BaseException` that does not end the process: a panic of an extension written in Rust is
  no `Exception`, and gRPC would leave the call without an answer.
"""

import asyncio
import contextlib
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import grpc

from server.errors import Code, DeadlineExceeded, NotServing, Overloaded, TranslationError
from server.rpc.messages import STATUS_CODES
from server.rpc.service import SERVICE_NAME
from server.telemetry.log import begin_request, facts, request_id
from server.telemetry.metrics import Metrics
from server.translation.traffic import Traffic

logger = logging.getLogger(__name__)

REQUEST_ID_KEY = "x-request-id"
PUSHBACK_KEY = "grpc-retry-pushback-ms"
_PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg] # not generic at run time
    """Wraps the handlers of our service; leaves health, reflection and channelz alone.

    Args:
        metrics: told of each call's start and end.
        traffic: counts the calls that run, and says whether they may.
        max_seconds: after which a call is answered DEADLINE_EXCEEDED whatever it does; later than any deadline that
            the service gives its requests, for the case that an engine hangs.
    """

    def __init__(self, metrics: Metrics, traffic: Traffic, max_seconds: float) -> None:
        self._metrics = metrics
        self._traffic = traffic
        self._max_seconds = max_seconds

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(handler_call_details)
        service, _, method = handler_call_details.method.strip("/").partition("/")
        if handler is None:
            self._metrics.start_request("other")(Code.UNIMPLEMENTED, 0.0)
        if handler is None or service != SERVICE_NAME:
            return handler

        async def call(request: Any, context: Any) -> Any:
            with self._traffic.call():
                return await self._call(method, handler, request, context)

        wrap = grpc.unary_unary_rpc_method_handler
        if handler.response_streaming:
            wrap = grpc.unary_stream_rpc_method_handler
        return wrap(call, handler.request_deserializer, handler.response_serializer)

    async def _call(self, method: str, handler: Any, request: Any, context: Any) -> Any:
        """Runs one call to its end; aborts it unless it went well."""
        begin_request(_choose_id(context))
        end = self._metrics.start_request(method)
        started = time.monotonic()
        code = Code.CANCELLED
        failure: TranslationError | None = None
        try:
            self._traffic.check()
            async with asyncio.timeout(self._max_seconds):
                response = await _respond(handler, request, context)
            code = Code.OK
            return response
        except asyncio.CancelledError:
            if _is_cancelled_from_outside():
                remaining = context.time_remaining()
                if remaining is not None and remaining <= 0:
                    code = Code.DEADLINE_EXCEEDED
                raise
            failure = NotServing("the server gave up this request; it may be sent again")
        except TimeoutError:
            failure = DeadlineExceeded(f"the server's limit of {self._max_seconds:g} seconds for a request is over")
        except TranslationError as error:
            failure = error
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException:
            logger.exception("a request failed by an error of the server's own")
            failure = TranslationError("internal error")
        finally:
            if failure is not None:
                code = failure.code
            seconds = time.monotonic() - started
            end(code, seconds)
            _log_end(method, code, seconds)
        return await _abort(context, failure)


async def _respond(handler: Any, request: Any, context: Any) -> Any:
    """Sends what the handler yields, or returns what it returns; the id goes ahead of the first message."""
    own_id = ((REQUEST_ID_KEY, request_id.get() or ""),)
    if not handler.response_streaming:
        response = await handler.unary_unary(request, context)
        await context.send_initial_metadata(own_id)
        return response
    has_begun = False
    messages: AsyncIterator[Any] = handler.unary_stream(request, context)
    async with contextlib.aclosing(messages):  # type: ignore[type-var]
        async for message in messages:
            if not has_begun:
                await context.send_initial_metadata(own_id)
                has_begun = True
            await context.write(message)
    return None


async def _abort(context: Any, failure: TranslationError) -> None:
    """Ends the call with an error's status; raises what gRPC wants raised."""
    identity = request_id.get() or ""
    trailing = [(REQUEST_ID_KEY, identity)]
    message = str(failure)
    if failure.code.is_ours:
        message = f"{message}; request id {identity}"
    if isinstance(failure, Overloaded):
        trailing.append((PUSHBACK_KEY, str(round(failure.retry_after_seconds * 1000))))
    await context.abort(STATUS_CODES[failure.code], message, tuple(trailing))


def _choose_id(context: Any) -> str:
    given: Iterator[str | bytes] = (
        value for key, value in context.invocation_metadata() or () if key == REQUEST_ID_KEY
    )
    identity = next(given, "")
    return identity if isinstance(identity, str) and _PLAIN_ID.fullmatch(identity) else uuid.uuid4().hex


def _is_cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _log_end(method: str, code: Code, seconds: float) -> None:
    level = logging.INFO
    if code.is_ours:
        level = logging.ERROR
    elif code.is_capacity:
        level = logging.WARNING
    fields = {"method": method, "code": code.name, "seconds": round(seconds, 6), **facts()}
    logger.log(level, "request", extra={"facts": fields})
