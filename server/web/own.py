"""Our own API over HTTP: the methods of `translation.proto`, with messages in JSON."""

import asyncio

from google.protobuf.message import Message
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, NotServing, TranslationError
from server.fronts.own import FRONT, error_event, read_message, write_message
from server.translation.long_messages import LIGHT_BYTES
from server.translation.rules import shown
from server.web.bodies import read_json
from server.web.exchange import SEND_SECONDS, SHUTTING_DOWN, Exchange, Site

_PARTIAL_TEXT = "include_partial_text"


class EventStream(Response):
    """An answer of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    It begins with the first event, so that an error before that is answered as any other.

    Args:
        exchange: the request.
    """

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(media_type="text/event-stream", headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self.headers["x-request-id"] = exchange.caller.request_id
        self.has_begun = False
        self._asgi_send = exchange.send
        self._abort = exchange.request.scope["state"]["abort"]

    async def write(self, data: bytes, event: str = "") -> None:
        """Sends one event. Its data must have no line break, as JSON that is written without them."""
        if not self.has_begun:
            self.has_begun = True
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await self._asgi_send(start)
        name = f"event: {event}\n".encode() if event else b""
        body = b"%bdata: %b\n\n" % (name, data)
        # Not by a timeout, whose exception would look like one of the work.
        untaken = asyncio.get_running_loop().call_later(SEND_SECONDS, self._abort)
        try:
            await self._asgi_send({"type": "http.response.body", "body": body, "more_body": True})
        finally:
            untaken.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 # as ASGI calls it
        """Ends the answer."""
        if not self.has_begun:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class OwnApi:
    """Handles the requests of our own API.

    Args:
        site: has what endpoints share.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._backend = site.backend

    def routes(self) -> list[Route]:
        """Returns the routes that an application has for it."""
        return self._site.routes(
            FRONT,
            {
                "POST /v1/translate": self.translate,
                "POST /v1/translate/stream": self.translate_stream,
                "POST /v1/score": self.score,
                "GET /v1/models": self.list_models,
                "GET /v1/glossaries": self.list_glossaries,
                "POST /v1/detect": self.detect_languages,
                "GET /healthz": self._site.health,
            },
        )

    async def translate(self, exchange: Exchange) -> Response:
        """Answers a `TranslateRequest`."""
        message = read_message(pb.TranslateRequest, read_json(exchange.take_body()))
        return await _response(await self._backend.translate(message, exchange.caller))

    async def translate_stream(self, exchange: Exchange) -> Response:
        """Answers a `TranslateRequest` with an event for each `TranslateStreamResponse`, then with `end` or `error`.

        `include_partial_text` of `TranslateStreamRequest` is a parameter of the query: "true" or "false".
        """
        request = read_message(pb.TranslateRequest, read_json(exchange.take_body()))
        with_partial = exchange.request.query_params.get(_PARTIAL_TEXT, "false")
        if with_partial not in ("true", "false"):
            raise InvalidRequest(_PARTIAL_TEXT, f"must be true or false, not {shown(with_partial)}")
        events = EventStream(exchange)
        try:
            await self._backend.translate_stream(
                pb.TranslateStreamRequest(request=request, include_partial_text=with_partial == "true"),
                exchange.caller,
                lambda message: events.write(write_message(message)),
            )
        except (TranslationError, asyncio.CancelledError) as error:  # to a caller who has left nothing is sent
            if not events.has_begun:
                raise
            failure = error if isinstance(error, TranslationError) else NotServing(SHUTTING_DOWN)
            await events.write(error_event(failure, exchange.caller.request_id), "error")
        else:
            await events.write(b"{}", "end")
        return events

    async def score(self, exchange: Exchange) -> Response:
        """Answers a `ScoreRequest`."""
        message = read_message(pb.ScoreRequest, read_json(exchange.take_body()))
        return await _response(await self._backend.score(message, exchange.caller))

    async def detect_languages(self, exchange: Exchange) -> Response:
        """Answers a `DetectLanguagesRequest`."""
        message = read_message(pb.DetectLanguagesRequest, read_json(exchange.take_body()))
        return await _response(await self._backend.detect_languages(message, exchange.caller))

    async def list_models(self, exchange: Exchange) -> Response:
        """Answers with a `ListModelsResponse`."""
        return await _response(await self._backend.list_models(exchange.caller))

    async def list_glossaries(self, exchange: Exchange) -> Response:
        """Answers with a `ListGlossariesResponse`."""
        return await _response(await self._backend.list_glossaries(exchange.caller))


async def _response(message: Message) -> Response:
    """Returns a message as JSON. To write it takes ten times as long as to read it, so a thread writes a long one."""
    is_long = message.ByteSize() > LIGHT_BYTES
    content = await asyncio.to_thread(write_message, message) if is_long else write_message(message)
    return Response(content, media_type="application/json")
