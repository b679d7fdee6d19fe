"""gRPC's own client, C-core by way of grpc.aio, behind the same methods as `tests.chaos.http2`.

It takes a few hundred microseconds a call, but it opens, fills and resets streams as the clients of users do.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

PREFIX_BYTES = 5  # of a message on the wire, which the other client leaves to its caller
_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # else the channels of a process share one connection
    ("grpc.enable_retries", 0),  # the load generator sends calls again itself
)
_READY_SECONDS = 30.0


class CoreConnection:
    """One channel with a connection of its own. Use `connect_core`."""

    def __init__(self, address: str, path: str, metadata: tuple[tuple[str, str], ...]) -> None:
        self._channel: Any = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self._method: Callable[..., grpc.aio.UnaryUnaryCall[bytes, bytes]] = self._channel.unary_unary(path, None, None)
        self._metadata = metadata
        self._closing: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Returns when the channel is connected. Raises TimeoutError."""
        await asyncio.wait_for(self._channel.channel_ready(), _READY_SECONDS)

    def call(
        self, message: bytes, timeout: float, ended: Callable[[str, bytes, dict[bytes, bytes]], None]
    ) -> "asyncio.Task[None]":
        """Sends a message, with gRPC's prefix. `ended` is told the status, the answer and the trailing fields."""
        return asyncio.create_task(self._run(message[PREFIX_BYTES:], timeout, ended))

    def cancel(self, stream: "asyncio.Task[None]") -> None:
        """Cancels a call; `ended` is not told."""
        stream.cancel()

    def close(self) -> None:
        """Ends the connection."""
        self._closing = asyncio.create_task(self._channel.close(None))

    async def _run(
        self, message: bytes, timeout: float, ended: Callable[[str, bytes, dict[bytes, bytes]], None]
    ) -> None:
        try:
            body = await self._method(message, timeout=timeout if timeout < 1e5 else None, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            trailing: Any = error.trailing_metadata() or ()
            ended(error.code().name, b"", {key.encode(): _bytes(value) for key, value in trailing})
        else:
            ended("OK", bytes(PREFIX_BYTES) + body, {})


async def connect_core(address: str, path: str, metadata: tuple[tuple[str, str], ...] = ()) -> CoreConnection:
    """Returns a connection to `host:port` that calls one method. Raises TimeoutError where nobody listens."""
    connection = CoreConnection(address, path, metadata)
    await connection.ready()
    return connection


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
