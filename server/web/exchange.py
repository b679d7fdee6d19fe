"""One request of HTTP and its answer: reads the body, ends the work when the caller leaves, and answers errors.

uvicorn lets a handler run on when its caller has hung up. So while a handler works, another task waits for the hang-up
and cancels the handler then.
"""

import asyncio
import itertools
import json
import logging
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from server.access.keys import key_of
from server.errors import InvalidRequest, NotServing, TranslationError
from server.fronts.backend import Backend, Caller
from server.fronts.front import Front
from server.translation.calls import choose_id
from server.translation.rules import shown
from server.web.bodies import MAX_BODY_BYTES, Bodies

logger = logging.getLogger(__name__)

REQUEST_ID_HEADER = "x-request-id"
TIMEOUT_HEADER = "x-request-timeout"
SHUTTING_DOWN = "the server is shutting down"
# For a caller to take an answer, an event of one, or a MiB of a file. Half, and slow phones lose long answers. Twice,
# and callers who read nothing keep the memory of their answers for longer.
SEND_SECONDS = 60.0
CHUNK_BYTES = 64 << 10  # an answer is written in pieces, each when the caller has taken most of the one before
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass(slots=True)
class Exchange:
    """A request that has been read.

    Attributes:
        request: its line and headers.
        body: whole, until it is taken.
        caller: who calls, by what the headers say.
        send: sends events of ASGI, for an answer that comes in parts.
    """

    request: Request
    body: bytes
    caller: Caller
    send: Send

    def take_body(self) -> bytes:
        """Returns the body and lets it go, because the handler may wait for long."""
        body, self.body = self.body, b""
        return body


Handler = Callable[[Exchange], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Site:
    """What the endpoints of all fronts share: who answers, and who reads bodies."""

    backend: Backend
    bodies: Bodies

    def routes(
        self,
        front: Front,
        handlers: Mapping[str, Handler],
        prefixes: Iterable[str] = ("",),
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> list[Route]:
        """Returns the routes of a front.

        Args:
            front: says how errors are answered.
            handlers: by method and path, such as "GET /languages"; the path as Starlette writes it.
            prefixes: of all paths; each path is served below each of them.
            max_body_bytes: of a request.
        """
        routes = []
        for prefix, (name, handle) in itertools.product(prefixes, handlers.items()):
            method, _, path = name.partition(" ")
            routes.append(Route(prefix + path, Endpoint(front, self, handle, max_body_bytes), methods=[method]))
        return routes

    async def health(self, _: Exchange) -> Response:
        """Answers 200 while requests are welcome. Raises NotServing while they are not."""
        if not self.backend.is_serving:
            raise NotServing("requests are not welcome: the server is loading or draining, or a lane is lost")
        return json_response({"status": "ok"})


class Endpoint:
    """An ASGI application that answers the requests of one path.

    Args:
        front: says how errors are answered.
        site: has what endpoints share.
        handle: answers.
        max_body_bytes: of a request.
    """

    def __init__(self, front: Front, site: Site, handle: Handler, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._front = front
        self._site = site
        self._handle = handle
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        request = Request(scope, receive)
        caller = _caller(self._front, request)
        response = await self._respond(request, caller, send)
        if response is not None:
            response.headers[REQUEST_ID_HEADER] = caller.request_id
            await self._send(response, scope, receive, send)

    async def _respond(self, request: Request, caller: Caller, send: Send) -> Response | None:
        """Returns the answer; None if the caller has left."""
        is_read, hang_up = False, None
        try:
            caller = replace(caller, seconds=_seconds(request.headers.get(TIMEOUT_HEADER)))
            body = await self._site.bodies.read(request, self._max_body_bytes)
            if body is None:
                return None
            is_read = True
            exchange = Exchange(request, body, caller, send)
            del body
            async with _HangUp(request.receive) as hang_up:
                return await self._handle(exchange)
        except asyncio.CancelledError:
            if hang_up is not None and hang_up.has_come:
                return None
            failure: TranslationError = NotServing(SHUTTING_DOWN)
            failure.is_recorded = True  # as cancelled
        except TranslationError as error:
            failure = error
        except Exception:
            logger.exception("a front failed by an error of its own")
            failure = TranslationError("internal error")
        if not failure.is_recorded:
            await self._site.backend.record(failure, caller)
        return self._error(failure, caller, closes=not is_read)

    def _error(self, error: TranslationError, caller: Caller, *, closes: bool) -> Response:
        """Returns the answer to an error. A connection is closed if the rest of a body would have to be read first."""
        status = self._front.status_of(error)
        words = self._front.words_of(error, caller.request_id)
        response = json_response(self._front.body(error, words, status), status)
        if error.retry_after_seconds is not None:
            response.headers["retry-after"] = str(max(1, math.ceil(error.retry_after_seconds)))
        if closes:
            response.headers["connection"] = "close"
        return response

    async def _send(self, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends an answer, and counts the memory of a long one until it is sent."""
        body = bytes(response.body) if hasattr(response, "body") else b""
        if response.headers.get("connection") == "close":
            await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await self._site.bodies.discard(receive)
            await send({"type": "http.response.body", "body": b""})
            return
        if len(body) <= CHUNK_BYTES:
            await response(scope, receive, send)
            return
        give_back = self._site.backend.keep(len(body))
        try:
            pieces = (body[begin : begin + CHUNK_BYTES] for begin in range(0, len(body), CHUNK_BYTES))
            await send_pieces(response, pieces, SEND_SECONDS, scope, send)
        finally:
            give_back()


async def send_pieces(response: Response, pieces: Iterable[bytes], seconds: float, scope: Scope, send: Send) -> None:
    """Sends the head of an answer, and its body in pieces.

    Ends the connection if the caller does not take it in time.
    """
    try:
        async with asyncio.timeout(seconds):
            await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
            for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(0)  # lets others work, and the connection end
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        scope["state"]["abort"]()  # of `Connection`; a close would wait for the caller to take what is written


def json_response(value: Any, status: int = 200) -> Response:
    """Returns an answer with a JSON value."""
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(content, status, media_type="application/json")


def _caller(front: Front, request: Request) -> Caller:
    headers = request.headers
    host = request.client.host if request.client else ""
    return Caller(
        front=front.name,
        request_id=choose_id(headers.get(REQUEST_ID_HEADER)),
        address=host,
        key=key_of(headers),
        names=request.scope.get("state", {}).get("names"),
        traceparent=headers.get("traceparent"),
    )


def _seconds(given: str | None) -> float | None:
    """Returns how long a caller says that it waits; None if it does not. Raises InvalidRequest."""
    if given is None:
        return None
    if not _SECONDS.fullmatch(given) or float(given) <= 0.0:
        raise InvalidRequest(TIMEOUT_HEADER, f"must be a number of seconds above 0, not {shown(given)}")
    return float(given)


class _HangUp:
    """Cancels the task that is in its `async with` block when the caller leaves.

    Attributes:
        has_come: whether the caller has left.
    """

    def __init__(self, receive: Receive) -> None:
        self.has_come = False
        self._receive = receive

    async def __aenter__(self) -> Self:
        work = asyncio.current_task()
        assert work is not None
        self._watching = asyncio.create_task(self._watch(work))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()

    async def _watch(self, work: "asyncio.Task[Any]") -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.has_come = True
        work.cancel()
