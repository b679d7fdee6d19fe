"""Runs every call of our service through `server.translation.calls`, and answers the errors that it raises.

The request's id comes back in the trailing metadata, for a stream in the initial metadata. Initial metadata commit a
call, and gRPC clients retry no committed call. For a single answer they are sent together with the answer, so that a
server that is killed has sent all of the answer or nothing.

A caller without permission is refused before the message of the call is received. gRPC calls the handler of a stream of
requests at once, and receives the first request only when the handler reads it. So every handler is registered as one
of a stream of requests.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import grpc

from server.access.access import Access
from server.errors import Code, TranslationError
from server.fronts import google, kserve, riva
from server.rpc.callers import identify
from server.rpc.health import HEALTH_NAME
from server.rpc.service import BULK_METHOD, SERVICE_NAME, STORE_NAME
from server.rpc.statuses import STATUS_CODES, retry_details
from server.telemetry.metrics import GOOGLE, GRPC, KSERVE, RIVA
from server.telemetry.tracing import TraceParent
from server.translation.calls import Call, Calls, choose_id, let_in

REQUEST_ID_KEY = "x-request-id"
TRACEPARENT_KEY = "traceparent"
PUSHBACK_KEY = "grpc-retry-pushback-ms"
DETAILS_KEY = "grpc-status-details-bin"

# What the calls of a service count as, and those of other vendors' methods.
_FRONTS = {
    SERVICE_NAME: GRPC,
    STORE_NAME: GRPC,
    **dict.fromkeys(google.SERVICE_NAMES, GOOGLE),
    riva.SERVICE_NAME: RIVA,
    kserve.SERVICE_NAME: KSERVE,
}
_METHODS = {
    "TranslateText": "Translate",
    "ModelInfer": "Translate",
    "ModelStreamInfer": "TranslateStream",
    "DetectLanguage": "DetectLanguages",
    "GetSupportedLanguages": "ListModels",
    "ListSupportedLanguagePairs": "ListModels",
    "RepositoryIndex": "ListModels",
    "ListGlossaries": "ListGlossaries",
    "GetGlossary": "ListGlossaries",
}
_ENDLESS = frozenset({BULK_METHOD, "ModelStreamInfer"})
# After which the caller of an endless call hears that it has begun. Half, and more calls are committed that a restart
# ends before their first answer. Three times, and the proxy of `deploy/envoy.yaml` takes them for stalled.
_SILENT_SECONDS = 5.0


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg] # not generic at run time
    """Wraps the handlers of the fronts' services. Other services, except health, may be called by the same callers.

    Args:
        calls: runs the calls.
        access: knows who may call.
    """

    def __init__(self, calls: Calls, access: Access) -> None:
        self._calls = calls
        self._access = access

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(handler_call_details)
        metadata: dict[str, Any] = dict(handler_call_details.invocation_metadata or ())
        service, _, method = handler_call_details.method.strip("/").partition("/")
        if handler is None:
            self._calls.count_other(Code.UNIMPLEMENTED)
        if handler is None or service == HEALTH_NAME:
            return handler
        front = _FRONTS.get(service)
        if front is None:  # reflection
            look = partial(self._look, handler, metadata)
            return grpc.stream_stream_rpc_method_handler(
                look, handler.request_deserializer, handler.response_serializer
            )
        wrap = grpc.stream_unary_rpc_method_handler
        if handler.response_streaming:
            wrap = grpc.stream_stream_rpc_method_handler
        run = partial(self._run, front, method, handler, metadata)
        return wrap(run, handler.request_deserializer, handler.response_serializer)

    async def _run(self, front: str, method: str, handler: Any, metadata: dict[str, Any], _: Any, context: Any) -> Any:
        call = Call(
            method if front == GRPC else _METHODS.get(method, "other"),
            choose_id(metadata.get(REQUEST_ID_KEY)),
            partial(_has_expired, context),
            TraceParent.read(metadata.get(TRACEPARENT_KEY)),
            is_endless=method in _ENDLESS,
            front=front,
        )
        try:
            return await self._calls.run(call, partial(self._respond, handler, metadata, context, call))
        except TranslationError as error:
            return await self._abort(context, error, call.request_id)

    async def _respond(self, handler: Any, metadata: dict[str, Any], context: Any, call: Call) -> Any:
        """Checks the caller, and sends what the handler yields, or returns what it returns."""
        let_in(identify(self._access, metadata, context), context.peer().rpartition(":")[0])
        if not handler.response_streaming:
            context.set_trailing_metadata(((REQUEST_ID_KEY, call.request_id),))
            return await handler.stream_unary(None, context)
        beginning = _Beginning(context, call.request_id)
        messages: AsyncIterator[Any] = handler.stream_stream(None, context)
        told = beginning.sent_after(_SILENT_SECONDS) if call.is_endless else contextlib.nullcontext()
        async with contextlib.aclosing(messages), told:  # type: ignore[type-var]
            async for message in messages:
                await beginning.send()
                await context.write(message)
        return None

    async def _look(
        self, handler: Any, metadata: dict[str, Any], requests: AsyncIterator[Any], context: Any
    ) -> AsyncIterator[Any]:
        """Checks the caller, and yields what a handler of streams yields."""
        try:
            identify(self._access, metadata, context)
        except TranslationError as error:
            self._calls.count_other(error.code)
            await self._abort(context, error, choose_id(metadata.get(REQUEST_ID_KEY)))
        async for message in handler.stream_stream(requests, context):
            yield message

    async def _abort(self, context: Any, error: TranslationError, request_id: str) -> None:
        """Ends the call with an error's status. Raises the exception that gRPC wants raised.

        Setting the code and returning would cost less, but it sends an empty message, and after a message clients do
        not retry.
        """
        trailing: list[tuple[str, str | bytes]] = [(REQUEST_ID_KEY, request_id)]
        code, message = STATUS_CODES[error.code], str(error)
        if error.code.is_ours:
            message += f"; request id {request_id}"
        if error.retry_after_seconds is not None:
            milliseconds = (
                math.ceil(self._calls.pushback.seconds(error.retry_after_seconds) * 100) * 10
            )  # few different ones
            trailing.append((PUSHBACK_KEY, str(milliseconds)))
            trailing.append((DETAILS_KEY, retry_details(code, milliseconds)))
        await context.abort(code, message, tuple(trailing))


class _Beginning:
    """The initial metadata of a stream, which are sent once.

    Args:
        context: of the call.
        request_id: of the call.
    """

    def __init__(self, context: Any, request_id: str) -> None:
        self._context = context
        self._metadata = ((REQUEST_ID_KEY, request_id),)
        self._sending: asyncio.Future[None] | None = None

    def send(self) -> "asyncio.Future[None]":
        """Sends them, unless that has begun; returns what is done when they are sent."""
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._context.send_initial_metadata(self._metadata))
        return self._sending

    @contextlib.asynccontextmanager
    async def sent_after(self, seconds: float) -> AsyncIterator[None]:
        """Sends them after a while, unless the block is left before.

        The block's end waits until they are sent, because gRPC would send them again with the status of the call.
        """
        timer = asyncio.get_running_loop().call_later(seconds, self.send)
        try:
            yield
        finally:
            timer.cancel()
            if self._sending is not None:
                await asyncio.gather(self._sending, return_exceptions=True)


def _has_expired(context: Any, spare: float) -> bool:
    remaining = context.time_remaining()
    return remaining is not None and remaining <= spare
