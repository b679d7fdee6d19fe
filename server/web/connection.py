"""A connection of HTTP: uvicorn's, with limits that uvicorn has not.

uvicorn waits for ever for the head of a request, and takes a head of any length, chunks of a byte each, and any number
of requests ahead of their turn.
"""

import asyncio
import re
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from server.access.directory import PeerNames

_MAX_HEAD_BYTES = 16 << 10  # as gRPC's metadata
_HEAD_SECONDS = 20.0  # for a head to become whole, from its first byte, or from the connection's begin. Half, and slow
# handshakes fail. Twice, and peers who send nothing keep their places for longer.
_SLICE_BYTES = 4 << 10  # that are parsed at once. Half, and long bodies take a tenth more. Twice, and twice as much of
# what a limit forbids is parsed before it is noticed.
_CHUNK_OVERHEAD = (
    0.125  # of a body, for the sizes of its chunks, besides the head's limit. Half, and chunks of 64 bytes
)
# are refused. Twice, and 8 MiB may come in chunks of 24 bytes, whose parsing takes 0.2 s.
_MAX_WAITING, _MAX_WAITING_BYTES = 128, 64 << 10  # requests that come before the answer to the one before, and their
# bodies. Half, and clients that send many at once are put out. Twice, and a connection may hold 1 MiB.
_UNTAKEN_MS = 60_000  # for which a peer may take nothing of what was sent to it; then the kernel ends the connection
_UPGRADE = re.compile(rb"\nupgrade:", re.IGNORECASE)
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"


class Connection(HttpToolsProtocol):
    """One connection.

    The state of a request has `abort`, which ends the connection at once, and `names`, those of the peer's certificate
    or None.
    """

    max_connections = 1000  # the server makes a class with its own limit

    _head_timer: asyncio.TimerHandle | None = None
    _num_bytes = 0  # of the message that is being parsed, and of what came with its first ones
    _num_body_bytes = 0
    _running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.write(_TOO_MANY)
            transport.close()
            return
        taken = transport.get_extra_info("socket")
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNTAKEN_MS)
        # asyncio does so only for a socket that was made with a number for TCP. Without, an answer takes 40 ms longer.
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.app_state = {**self.app_state, "abort": transport.abort, "names": _names(transport)}
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._end_head()
        super().connection_lost(exc)
        if self._running is not None:  # uvicorn tells only the last request, which may still wait for its turn
            self._running.disconnected = not self._running.response_complete
            self._running.message_event.set()
        self.pipeline.clear()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        for begin in range(0, len(data), _SLICE_BYTES):
            piece = data[begin : begin + _SLICE_BYTES]
            super().data_received(self._without_upgrade(piece))
            self._num_bytes += len(piece)
            if not self.transport.is_closing():
                self._check_limits()
            if self.transport.is_closing():
                return

    def _without_upgrade(self, data: bytes) -> bytes:
        """Returns what was received, without a wish for another protocol in a head, as Java's clients have.

        The parser would leave out the body of such a request, and end there.
        """
        if (self._head_timer is None and self.cycle.more_body) or b"pgrade" not in data:
            return data
        head, end, body = data.partition(b"\r\n\r\n")
        return _UPGRADE.sub(b"\nx-ignored:", head) + end + body

    def _check_limits(self) -> None:
        """Ends the connection if what is no body is too long, or too much has come ahead of its turn."""
        if self._num_bytes > _MAX_HEAD_BYTES + (1.0 + _CHUNK_OVERHEAD) * self._num_body_bytes:
            if self._running is None or self._running.response_complete:
                self.transport.write(_TOO_LONG)
            self.transport.close()
        waiting = [len(cycle.body) for cycle, _ in self.pipeline]
        if len(waiting) > _MAX_WAITING or sum(waiting) > _MAX_WAITING_BYTES:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """See `httptools.HttpRequestParser`."""
        self._num_bytes = self._num_body_bytes = 0
        self._await_head()
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """See `httptools.HttpRequestParser`."""
        self._num_body_bytes += len(body)
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """See `httptools.HttpRequestParser`."""
        self._end_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """See `httptools.HttpRequestParser`. It goes on reading, because else nobody would see the peer hang up."""
        super().on_message_complete()
        self.flow.resume_reading()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _await_head(self) -> None:
        self._end_head()
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _end_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _names(transport: asyncio.Transport) -> PeerNames | None:
    """Returns the names of the certificate that the peer has shown; None if it has shown none."""
    certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}
    if not certificate:
        return None
    common = [value for part in certificate.get("subject", ()) for name, value in part if name == "commonName"]
    uris = tuple(value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI")
    return PeerNames(common_name=common[0] if common else "", uris=uris)
