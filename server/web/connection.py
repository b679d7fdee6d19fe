"""A connection of HTTP: uvicorn's, with limits that uvicorn has not.

uvicorn waits for ever for the head of a request, and takes a head of any length, chunks of a byte each, and any number
of requests ahead of their turn. It takes heads that a balancer in front may read otherwise, and fields behind a body as
if they stood before it. It also writes the head of an answer apart from its body.
"""

import asyncio
import re
import socket
import weakref
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from server.access.directory import PeerNames
from server.web.heads import fault_of

_MAX_HEAD_BYTES = 16 << 10  # as gRPC's metadata
# For a head to become whole, from its first byte or the connection's begin, and for the rest of a body that is answered
# already. Half, and slow handshakes fail. Twice, and peers who send nothing keep their places for longer.
_HEAD_SECONDS = 20.0
# That are parsed at once. Half, and to receive long bodies takes a quarter more of the event loop. Twice, and twice as
# much of what a limit forbids is parsed before it is noticed.
_SLICE_BYTES = 16 << 10
# Share of a body that the sizes of its chunks may take, besides the head's limit. Half, and chunks of 64 bytes are
# refused. Twice, and 8 MiB may come in chunks of 24 bytes, whose parsing takes 0.2 s.
_CHUNK_OVERHEAD = 0.125
_MAX_WAITING, _MAX_WAITING_BYTES = 128, 64 << 10  # requests that come before the answer to the one before, and their
# bodies. Half, and clients that send many at once are put out. Twice, and a connection may hold 1 MiB.
_UNTAKEN_MS = 60_000  # for which a peer may take nothing of what was sent to it; then the kernel ends the connection
_WISH = b"upgrade:"  # a line of a head begins so
_UPGRADE = re.compile(b"\n" + _WISH, re.IGNORECASE)
_IGNORED = b"\nignored:"  # as long, because the parser counts bytes
_HEAD_END = b"\r\n\r\n"
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"


class Connection(HttpToolsProtocol):
    """One connection.

    The state of a request has `abort`, which ends the connection at once, and `names`, those of the peer's certificate
    or None.
    """

    # The server makes a class with its own.
    max_connections = 1000
    is_serving: Callable[[], bool] = staticmethod(lambda: True)

    _timer: asyncio.TimerHandle | None = None  # for what the peer must send by then
    _is_in_body = False
    _last_bytes = b""  # before those that are parsed
    _held = b""  # received and not parsed yet
    _fault = ""  # of the head
    _num_bytes = 0  # of the message that is being parsed, and of what came with its first ones
    _num_body_bytes = 0
    _running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._body_parts: list[bytes] = []
        if len(self.connections) > self.max_connections:
            transport.write(_TOO_MANY)
            transport.close()
            return
        taken = transport.get_extra_info("socket")
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNTAKEN_MS)
        # asyncio does so only for a socket that was made with a number for TCP. Without, an answer takes 40 ms longer.
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.app_state = {**self.app_state, "abort": transport.abort, "names": _names(transport)}
        self._begin_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._end_wait()
        super().connection_lost(exc)
        if self._running is not None:  # uvicorn tells only the last request, which may still wait for its turn
            self._running.disconnected = not self._running.response_complete
            self._running.message_event.set()
        self.pipeline.clear()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        for begin in range(0, len(data), _SLICE_BYTES):
            piece = self._without_upgrade(self._held + data[begin : begin + _SLICE_BYTES])
            if not piece:
                continue
            super().data_received(piece)
            self._last_bytes = (self._last_bytes + piece[-3:])[-3:]
            self._num_bytes += len(piece)
            if not self.transport.is_closing():
                self._check_limits()
            if self.transport.is_closing():
                return
        self._flush_body()

    def _without_upgrade(self, data: bytes) -> bytes:
        """Returns what was received, without a wish for another protocol in a head, as Java's clients have.

        The parser would leave out the body of such a request, and end there. A last line that may be the begin of a
        wish is held back until more comes.
        """
        self._held = b""
        if self._is_in_body:
            return data
        begin = len(self._last_bytes)
        data = self._last_bytes + data
        end = data.find(_HEAD_END)
        if end >= 0:
            return (_UPGRADE.sub(_IGNORED, data[:end]) + data[end:])[begin:]
        data = _UPGRADE.sub(_IGNORED, data)
        line = data.rfind(b"\n") + 1
        if max(1, begin) <= line < len(data) and _WISH.startswith(data[line:].lower()):
            data, self._held = data[:line], data[line:]
        return data[begin:]

    def _check_limits(self) -> None:
        """Ends the connection if what is no body is too long, or too much has come ahead of its turn."""
        if self._num_bytes > _MAX_HEAD_BYTES + (1.0 + _CHUNK_OVERHEAD) * self._num_body_bytes:
            if self._is_answered():
                self.transport.write(_TOO_LONG)
            self.transport.close()
        waiting = [len(cycle.body) for cycle, _ in self.pipeline]
        if len(waiting) > _MAX_WAITING or sum(waiting) > _MAX_WAITING_BYTES:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answers a request that cannot be read, unless that would seem to be the answer to the one before."""
        if self._is_answered() or (self._is_in_body and not self.cycle.response_started and not self.pipeline):
            super().send_400_response(self._fault or msg)
        self.transport.close()

    def on_message_begin(self) -> None:
        """See `httptools.HttpRequestParser`."""
        self._num_bytes = self._num_body_bytes = 0
        self._begin_wait()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """See `httptools.HttpRequestParser`. It drops fields behind a body, which no balancer has looked at."""
        if not self._is_in_body:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """See `httptools.HttpRequestParser`."""
        self._num_body_bytes += len(body)
        self._body_parts.append(body)

    def _flush_body(self) -> None:
        """Hands a body's parts on at once, because uvicorn copies all that waits whenever it is given more."""
        if self._body_parts:
            super().on_body(b"".join(self._body_parts))
            self._body_parts.clear()

    def on_headers_complete(self) -> None:
        """See `httptools.HttpRequestParser`."""
        self._end_wait()
        self._fault = fault_of(self.parser.get_http_version(), self.headers)
        if self._fault:
            raise ValueError(self._fault)  # uvicorn then sends the response below
        self._is_in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """See `httptools.HttpRequestParser`. It goes on reading, because else nobody would see the peer hang up."""
        self._is_in_body = False
        self._end_wait()
        self._flush_body()
        super().on_message_complete()
        self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """See `HttpToolsProtocol`. The rest of a body may come for a while yet."""
        super().on_response_complete()
        if self._is_in_body and self.cycle.response_complete:
            self._begin_wait()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        cycle.transport = _JoiningTransport(cycle, self.loop)
        cycle.keep_alive = cycle.keep_alive and self.is_serving()  # else the caller's next request goes elsewhere
        super()._start_asgi_task(cycle, app)

    def _is_answered(self) -> bool:
        return self._running is None or self._running.response_complete

    def _begin_wait(self) -> None:
        self._end_wait()
        self._timer = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _JoiningTransport(asyncio.Transport):
    """Writes the head of an answer together with its body, if that follows before the event loop runs anything else.

    uvicorn writes them apart. If the process is killed in between, a balancer in front already has the head, and cannot
    send the request elsewhere any more.
    """

    def __init__(self, cycle: RequestResponseCycle, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._cycle = weakref.proxy(cycle)  # else only the garbage collector would free the request
        self._transport = cycle.transport
        self._loop = loop
        self._is_past_head = False
        self._held = b""

    def write(self, data: Any) -> None:
        """See `asyncio.WriteTransport`."""
        is_head = self._cycle.response_started and not self._is_past_head
        self._is_past_head = self._cycle.response_started
        if is_head and self._cycle.scope["method"] != "HEAD":  # nothing follows the head of such an answer
            self._held = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(self._held + data)
            self._held = b""

    def close(self) -> None:
        """See `asyncio.BaseTransport`. A head whose body has failed is not written."""
        self._held = b""
        self._transport.close()

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._transport.is_closing()

    def _flush(self) -> None:
        if self._held and not self._transport.is_closing():
            self._transport.write(self._held)
            self._held = b""


def _names(transport: asyncio.Transport) -> PeerNames | None:
    """Returns the names of the certificate that the peer has shown; None if it has shown none."""
    certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}
    if not certificate:
        return None
    common = [value for part in certificate.get("subject", ()) for name, value in part if name == "commonName"]
    uris = tuple(value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI")
    return PeerNames(common_name=common[0] if common else "", uris=uris)
