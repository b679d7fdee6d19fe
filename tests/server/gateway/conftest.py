"""A gateway in front of a real gRPC server, whose engine echoes; all on the loopback and on one event loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry

from server.access.access import Access
from server.documents.documents import Documents
from server.gateway.remote import Remote
from server.gateway.upstream import Upstream
from server.rpc.health import Health
from server.rpc.intake import Intake
from server.rpc.interceptors import CallInterceptor
from server.rpc.servers import RpcServers, open_servers
from server.rpc.service import TranslationService
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.translation.calls import Calls
from server.translation.long_messages import LongMessages
from server.translation.memory import MemoryBudget
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from server.web.app import create_app
from server.web.serving import HttpServer
from tests.server.web.client import Answer, call

MAX_BYTES = 64 << 20


async def until(is_so: Callable[[], bool]) -> None:
    """Returns when it is so; else the test's own time ends it."""
    while not is_so():  # noqa: ASYNC110 # nothing tells it
        await asyncio.sleep(0.01)


@dataclass(frozen=True, slots=True)
class Behind:
    """A gateway, and the server behind it."""

    port: int
    remote: Remote
    upstream: Upstream
    health: Health
    servers: RpcServers
    metrics: Metrics  # of the gateway

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Sends one request to the gateway; "_" in names of headers stands for "-"."""
        named = {name.replace("_", "-"): each for name, each in headers.items()}
        return await call(self.port, method, path, body, named)


OpenGateway = Callable[..., AbstractAsyncContextManager[Behind]]


@pytest.fixture
def opening_gateway(translator: Translator, metrics: Metrics) -> OpenGateway:
    """Opens a server and its gateway, which serves when the block begins."""

    @contextlib.asynccontextmanager
    async def opening(
        access: Access | None = None,
        target: str = "127.0.0.1",
        credentials: grpc.ChannelCredentials | None = None,
        **tls: Any,
    ) -> AsyncIterator[Behind]:
        access, running, health = access or Access(metrics.access), RunningCalls(), Health(metrics)
        service = TranslationService(translator, Intake(translator.memory, 8), running)
        interceptor = CallInterceptor(Calls(metrics, running, 20.0), access)
        servers = open_servers(
            Settings(port=0, health_port=0, admin_port=0, **tls), service, interceptor, health, access
        )
        await servers.start()
        health.set_serving(True)
        upstream = Upstream(f"{target}:{servers.ports[0]}", credentials)
        own = Metrics(CollectorRegistry())
        own.access.add_tenants(["anonymous"])
        remote = Remote(upstream, Calls(own, RunningCalls(), 20.0), MemoryBudget(MAX_BYTES), lambda: True)
        documents = Documents(remote)
        app = create_app(remote, LongMessages(), documents)
        http = HttpServer(app, "127.0.0.1", 0, 100, at_end=documents.close)
        watching = asyncio.create_task(upstream.watch())
        await http.start()
        await until(lambda: upstream.is_serving)
        try:
            yield Behind(http.port, remote, upstream, health, servers, own)
        finally:
            watching.cancel()
            await http.stop()
            await upstream.close()
            await servers.stop()

    return opening


@pytest_asyncio.fixture
async def behind(opening_gateway: OpenGateway) -> AsyncIterator[Behind]:
    """A gateway of a server that lets everybody in."""
    async with opening_gateway() as opened:
        yield opened
