"""Runs every call of our service as `server.translation.calls` has it, and answers what it raises.

The request's id comes back in the initial metadata or, when a call fails, in the trailing metadata: initial metadata
commits a call, and gRPC clients retry no committed call.
"""

import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import grpc

from server.errors import Overloaded, TranslationError
from server.rpc.messages import STATUS_CODES, retry_details
from server.rpc.service import SERVICE_NAME
from server.telemetry.tracing import TraceParent
from server.translation.calls import Call, Calls, choose_id

REQUEST_ID_KEY = "x-request-id"
TRACEPARENT_KEY = "traceparent"
PUSHBACK_KEY = "grpc-retry-pushback-ms"
DETAILS_KEY = "grpc-status-details-bin"
_READ_KEYS = (REQUEST_ID_KEY, TRACEPARENT_KEY)


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg] # not generic at run time
    """Wraps the handlers of our service; leaves health, reflection and channelz alone."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(handler_call_details)
        service, _, method = handler_call_details.method.strip("/").partition("/")
        if handler is None:
            self._calls.count_unknown()
        if handler is None or service != SERVICE_NAME:
            return handler
        wrap = grpc.stream_unary_rpc_method_handler
        if handler.response_streaming:
            wrap = grpc.stream_stream_rpc_method_handler
        run = partial(self._run, method, handler)
        return wrap(run, handler.request_deserializer, handler.response_serializer)

    async def _run(self, method: str, handler: Any, request: Any, context: Any) -> Any:
        given = {key: value for key, value in context.invocation_metadata() or () if key in _READ_KEYS}
        parent = TraceParent.read(given.get(TRACEPARENT_KEY))
        call = Call(method, choose_id(given.get(REQUEST_ID_KEY)), partial(_has_expired, context), parent)
        try:
            return await self._calls.run(call, partial(_respond, handler, request, context, call.request_id))
        except TranslationError as error:
            return await _abort(context, error, call.request_id)


async def _respond(handler: Any, request: Any, context: Any, request_id: str) -> Any:
    """Sends what the handler yields, or returns what it returns; the id goes ahead of the first message."""
    own_id = ((REQUEST_ID_KEY, request_id),)
    if not handler.response_streaming:
        response = await handler.stream_unary(request, context)
        await context.send_initial_metadata(own_id)
        return response
    has_begun = False
    messages: AsyncIterator[Any] = handler.stream_stream(request, context)
    async with contextlib.aclosing(messages):  # type: ignore[type-var]
        async for message in messages:
            if not has_begun:
                await context.send_initial_metadata(own_id)
                has_begun = True
            await context.write(message)
    return None


async def _abort(context: Any, error: TranslationError, request_id: str) -> None:
    """Ends the call with an error's status; raises what gRPC wants raised.

    To set the code and return would cost less, but sends an empty message, after which clients do not retry.
    """
    trailing: list[tuple[str, str | bytes]] = [(REQUEST_ID_KEY, request_id)]
    code, message = STATUS_CODES[error.code], str(error)
    if error.code.is_ours:
        message += f"; request id {request_id}"
    if isinstance(error, Overloaded):
        milliseconds = math.ceil(error.retry_after_seconds * 100) * 10  # few different ones
        trailing.append((PUSHBACK_KEY, str(milliseconds)))
        trailing.append((DETAILS_KEY, retry_details(code, milliseconds)))
    await context.abort(code, message, tuple(trailing))


def _has_expired(context: Any) -> bool:
    remaining = context.time_remaining()
    return remaining is not None and remaining <= 0
