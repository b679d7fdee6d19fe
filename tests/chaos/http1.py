"""Callers over HTTP: the load generator's connections, with the same methods as those of `tests.chaos.http2`.

A call is `POST /v1/translate` over a connection that is kept. One that is given up is hung up on, as HTTP has no other
way to say so.
"""

import asyncio
import functools
import json
from collections.abc import Callable

from google.protobuf.json_format import MessageToJson, Parse

from babelserve.v1.translation_pb2 import TranslateRequest, TranslateResponse

PATH = "/v1/translate"
CUT = "no answer"  # of a call that was sent
PREFIX_BYTES = 5  # of gRPC's messages, which the load generator has
_Ended = Callable[[str, bytes, dict[bytes, bytes]], None]


class HttpConnection:
    """As many connections to one server as calls run at once. Use `connect_http`.

    Args:
        address: `host:port`.
        metadata: more headers of every call.
    """

    def __init__(self, address: str, metadata: tuple[tuple[str, str], ...]) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in metadata)
        self._idle: list[_Wire] = []
        self._calls: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Opens the first connection. Raises OSError where nobody listens."""
        self._idle.append(await self._wire())

    def call(self, message: bytes, timeout: float, ended: _Ended) -> "asyncio.Task[None]":
        """Sends a message, with gRPC's prefix. `ended` is told the status, the answer and the time to come back."""
        call = asyncio.create_task(self._run(message, timeout, ended))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return call

    def cancel(self, stream: "asyncio.Task[None]") -> None:
        """Hangs up; `ended` is not told."""
        stream.cancel()

    def close(self) -> None:
        """Ends all connections."""
        for wire in self._idle:
            wire.close()
        for call in self._calls:
            call.cancel()

    async def _run(self, message: bytes, timeout: float, ended: _Ended) -> None:
        body = _as_json(message)
        told = f"x-request-timeout: {timeout:.3f}\r\n" if timeout < 1e5 else ""
        head = f"POST {PATH} HTTP/1.1\r\nhost: test\r\ncontent-length: {len(body)}\r\n{told}{self._headers}\r\n"
        wire = None
        try:
            wire = await self._wire()
            status, headers, answer = await wire.ask(head.encode() + body)
        except OSError:
            if wire is not None:
                wire.close()
            ended("UNAVAILABLE" if wire is None else CUT, b"", {})
            return
        except asyncio.CancelledError:
            if wire is not None:
                wire.close()
            raise
        if headers.get("connection") != "close":
            self._idle.append(wire)
        else:
            wire.close()
        if status == 200:
            ended("OK", bytes(PREFIX_BYTES) + Parse(answer, TranslateResponse()).SerializeToString(), {})
            return
        retry = headers.get("retry-after")
        ended(
            _code(status, answer), b"", {} if retry is None else {b"grpc-retry-pushback-ms": b"%s000" % retry.encode()}
        )

    async def _wire(self) -> "_Wire":
        while self._idle:
            wire = self._idle.pop()
            if wire.is_open:
                return wire
        _, wire = await asyncio.get_running_loop().create_connection(_Wire, self._host, int(self._port))
        return wire


class _Wire(asyncio.Protocol):
    """One connection, which has one request at a time."""

    def __init__(self) -> None:
        self.is_open = True
        self._buffer = b""
        self._answer: asyncio.Future[tuple[int, dict[str, str], bytes]] | None = None

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        """Returns status, headers and body. Raises ConnectionError where none came."""
        if not self.is_open:
            raise ConnectionResetError
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        """Hangs up."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("closed"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        if not end or self._answer is None or self._answer.done():
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if len(body) >= int(headers.get("content-length", 0)):
            self._buffer = b""
            self._answer.set_result((int(first.split()[1]), headers, body))


@functools.lru_cache(4096)
def _as_json(message: bytes) -> bytes:
    return MessageToJson(TranslateRequest.FromString(message[PREFIX_BYTES:]), indent=None).encode()


def _code(status: int, answer: bytes) -> str:
    """Returns the name of the code that an error's body has; one without says its status."""
    try:
        return str(json.loads(answer)["error"]["status"])
    except (ValueError, KeyError, TypeError):
        return "UNAVAILABLE" if status == 503 else f"HTTP {status}"


async def connect_http(address: str, _: str = PATH, metadata: tuple[tuple[str, str], ...] = ()) -> HttpConnection:
    """Returns what calls a server at `host:port`. Raises OSError where nobody listens."""
    connection = HttpConnection(address, metadata)
    await connection.open()
    return connection
