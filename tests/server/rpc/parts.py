"""Calls to a live server, and what is read off their failures."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest
from google.protobuf.message import Message

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.rpc.health import Health
from server.rpc.servers import RpcServers
from server.telemetry.metrics import Metrics
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.certificates import Issued, authority
from tests.server.conftest import Live

SECRET = "secret sentence"
REQUEST = pb.TranslateRequest(contents=[SECRET], target_language_code="de")
SECONDS = 100.0  # far above what any of these needs; a hang fails
STREAM_REQUEST = pb.TranslateStreamRequest(request=REQUEST)

_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True, slots=True)
class Public:
    """A client's channel to a server, and what the server is made of."""

    channel: grpc.aio.Channel
    translator: Translator
    running: RunningCalls
    health: Health

    async def ask(self, path: str, message: Message | bytes, kind: type[_M], metadata: Any = ()) -> _M:
        """Calls a method with a message, or with any bytes; the answer is of a kind of messages."""
        channel: Any = self.channel  # whose stubs want serialisers that are optional
        data = message if isinstance(message, bytes) else message.SerializeToString()
        return kind.FromString(await channel.unary_unary(path)(data, metadata=metadata, timeout=SECONDS))


Open = Callable[..., RpcServers]
OpenPublic = Callable[..., AbstractAsyncContextManager[Public]]


def raw(live: Live) -> Any:
    """The channel, whose stubs want serialisers that are optional."""
    return live.channel


async def failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def trailing(error: grpc.aio.AioRpcError) -> dict[str, str | bytes]:
    metadata: Any = error.trailing_metadata() or ()
    return dict(metadata)


def count(metrics: Metrics, method: str, code: str) -> float | None:
    return metrics.registry.get_sample_value("babelserve_requests_total", {"method": method, "code": code})


@contextlib.asynccontextmanager
async def started(servers: RpcServers) -> AsyncIterator[RpcServers]:
    await servers.start()
    try:
        yield servers
    finally:
        await servers.stop()


async def answer(port: int, client: Issued | None = None, *, trusted: bytes | None = None) -> grpc.StatusCode:
    """Calls over a connection of its own; by default trusts the authority that all tests share."""
    credentials = grpc.ssl_channel_credentials(
        trusted or authority().pem, client.key if client else None, client.chain if client else None
    )
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials, options) as channel:
        call: Any = TranslationServiceStub(channel).Translate(REQUEST, timeout=SECONDS)
        code: grpc.StatusCode = await call.code()
        return code


async def told(call: Any) -> tuple[grpc.StatusCode, str]:
    """What a failed call says."""
    error = await failure(call)
    return error.code(), error.details() or ""


def request(*contents: str, **fields: Any) -> pb.TranslateRequest:
    return pb.TranslateRequest(contents=contents, **({"target_language_code": "de"} | fields))


async def streamed(live: Live, *contents: str, **fields: Any) -> list[pb.TranslateStreamResponse]:
    call = live.stub.TranslateStream(pb.TranslateStreamRequest(request=request(*contents, **fields)))
    return [message async for message in call]


def write_certificate(paths: dict[str, Path], issued: Issued) -> None:
    paths["tls_cert"].write_bytes(issued.chain)
    paths["tls_key"].write_bytes(issued.key)
