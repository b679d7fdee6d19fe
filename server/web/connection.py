"""A connection of HTTP: uvicorn's, with limits that uvicorn has not.

uvicorn waits for ever for the head of a request, and takes a head of any length.
"""

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.access.directory import PeerNames

_MAX_HEAD_BYTES = 16 << 10  # as gRPC's metadata
_HEAD_SECONDS = 20.0  # for a head to become whole, from its first byte, or from the connection's begin. Half, and slow
# handshakes fail. Twice, and peers who send nothing keep their places for longer.
_UNTAKEN_MS = 60_000  # for which a peer may take nothing of what was sent to it; then the kernel ends the connection
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"


class Connection(HttpToolsProtocol):
    """One connection.

    The state of a request has `abort`, which ends the connection at once, and `names`, those of the peer's certificate
    or None.
    """

    max_connections = 1000  # the server makes a class with its own limit

    _head_timer: asyncio.TimerHandle | None = None
    _num_head_bytes = 0

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

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        if self._head_timer is not None:
            self._num_head_bytes += len(data)
            if self._num_head_bytes > _MAX_HEAD_BYTES and not self.transport.is_closing():
                self.transport.write(_TOO_LONG)
                self.transport.close()

    def on_message_begin(self) -> None:
        """See `httptools.HttpRequestParser`."""
        self._await_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """See `httptools.HttpRequestParser`."""
        self._end_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """See `httptools.HttpRequestParser`. It goes on reading, because else nobody would see the peer hang up."""
        super().on_message_complete()
        self.flow.resume_reading()

    def _await_head(self) -> None:
        self._end_head()
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _end_head(self) -> None:
        self._num_head_bytes = 0
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
