"""Servers on free ports of the loopback."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from server.access.access import Access
from server.rpc.admin import ModelAdminService
from server.rpc.health import Health
from server.rpc.intake import Intake
from server.rpc.interceptors import CallInterceptor
from server.rpc.servers import RpcServers, open_servers
from server.rpc.service import TranslationService
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.translation.calls import Calls
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.certificates import authority
from tests.server.rpc.parts import SECONDS, Open, OpenPublic, Public, write_certificate


@pytest.fixture
def opening(translator: Translator, metrics: Metrics) -> Open:
    """Opens servers, on free ports unless it is told others."""

    def opening(
        access: Access | None = None, *, model_admin: ModelAdminService | None = None, **settings: Any
    ) -> RpcServers:
        free = {"port": 0, "health_port": 0, "admin_port": 0}
        access = access or Access(metrics.access)
        running = RunningCalls()
        service = TranslationService(translator, Intake(translator.memory, 8), running)
        interceptor = CallInterceptor(Calls(metrics, running, SECONDS), access)
        return open_servers(Settings(**(free | settings)), service, interceptor, Health(metrics), access, model_admin)

    return opening


@pytest.fixture
def opening_public(translator: Translator, metrics: Metrics) -> OpenPublic:
    """Opens a server with all that the public port has."""

    @contextlib.asynccontextmanager
    async def opening(access: Access | None = None) -> AsyncIterator[Public]:
        access, running, health = access or Access(metrics.access), RunningCalls(), Health(metrics)
        service = TranslationService(translator, Intake(translator.memory, 8), running)
        interceptor = CallInterceptor(Calls(metrics, running, SECONDS), access)
        settings = Settings(port=0, health_port=0, admin_port=0)
        servers = open_servers(settings, service, interceptor, health, access)
        await servers.start()
        health.set_serving(True)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{servers.ports[0]}") as channel:
            yield Public(channel, translator, running, health)
        await servers.stop()

    return opening


@pytest_asyncio.fixture
async def public(opening_public: OpenPublic) -> AsyncIterator[Public]:
    """A server with all that the public port has, for everybody."""
    async with opening_public() as opened:
        yield opened


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, Path]:
    """Files of a server for localhost that knows the authority of its clients."""
    paths = {name: tmp_path / name for name in ("tls_cert", "tls_key", "tls_client_ca")}
    write_certificate(paths, authority().issue())
    paths["tls_client_ca"].write_bytes(authority().pem)
    return paths
