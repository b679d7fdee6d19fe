"""Listens on all ports: gRPC for callers, health and operators, HTTP for the metrics page and, if set, the API."""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from server.access.access import Access
from server.errors import SettingsError
from server.models.administration import Administration
from server.models.loading import bundle_faults, process_memory
from server.rpc.admin import ModelAdminService
from server.rpc.health import Health
from server.rpc.intake import HEALTH_MESSAGES, Intake, messages_at_once
from server.rpc.interceptors import CallInterceptor
from server.rpc.servers import HTTP_SHARE, RpcServers, connections_of, open_servers, other_ports
from server.rpc.service import TranslationService
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.telemetry.page import serve_page
from server.translation.calls import Calls
from server.translation.long_messages import LongMessages
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

LAST_GRACE_SECONDS = 1.0  # for answers on their way, before streams that never end (health watches) are cut


@dataclass(frozen=True, slots=True)
class Listening:
    """What listens.

    Attributes:
        rpc: the servers of gRPC.
        http: the server of the API over HTTP (`server.web.serving.HttpServer`); None without.
        metrics_port: of the metrics page.
    """

    rpc: RpcServers
    http: Any
    metrics_port: int

    async def drain(self) -> None:
        """Takes no more requests by any front, and lets answers out that are on their way."""
        await asyncio.gather(
            self.rpc.translation.stop(LAST_GRACE_SECONDS), *([self.http.stop()] if self.http is not None else [])
        )


@contextlib.asynccontextmanager
async def listening(
    settings: Settings,
    metrics: Metrics,
    translator: Translator,
    calls: Calls,
    running: RunningCalls,
    health: Health,
    admin: Administration | None,
    reload: asyncio.Event,
) -> AsyncIterator[Listening]:
    """Serves on all ports until the end of the block.

    Requests are answered UNAVAILABLE, health checks NOT_SERVING, until a model is there.

    Raises:
        SettingsError: everything that keeps it from listening, and what is wrong with the bundle.
    """
    health.set_serving(False)
    health.set_alive(True)
    long_messages = LongMessages()
    most = messages_at_once(process_memory(settings)) - HEALTH_MESSAGES
    service = TranslationService(translator, Intake(translator.memory, most, long_messages=long_messages), running)
    with contextlib.ExitStack() as stack:
        faults: list[str] = []
        http = None
        try:
            page = serve_page(settings.host, settings.metrics_port, metrics.registry)
            metrics_port = stack.enter_context(page)
        except OSError as error:
            where = f"{settings.host} port {settings.metrics_port}"
            faults.append(f"--metrics-port: cannot listen on {where}: {error.strerror}")
        try:
            access = _access(settings, metrics)
            model_admin = ModelAdminService(admin, access, metrics.catalogue) if admin is not None else None
            if settings.http_port is not None:
                http = _open_http(settings, translator, calls, access, health, long_messages, faults)
            servers = open_servers(settings, service, CallInterceptor(calls, access), health, access, model_admin)
        except SettingsError as error:
            faults += error.faults
        if faults:
            raise SettingsError([*faults, *other_ports(faults), *bundle_faults(settings)])
        renewing = asyncio.create_task(access.watch(reload))
        try:
            await servers.start()
            if http is not None:
                await http.start()
            yield Listening(servers, http, metrics_port)
        finally:
            renewing.cancel()
            if http is not None:
                await http.stop()
            await servers.stop()


def _access(settings: Settings, metrics: Metrics) -> Access:
    return Access(
        metrics.access,
        tls_cert=settings.tls_cert,
        tls_key=settings.tls_key,
        tls_client_ca=settings.tls_client_ca,
        keys=settings.keys,
        admin_keys=settings.admin_keys,
    )


def _open_http(
    settings: Settings,
    translator: Translator,
    calls: Calls,
    access: Access,
    health: Health,
    long_messages: LongMessages,
    faults: list[str],
) -> Any:
    """Returns the server of the API over HTTP, its port bound; None after it has added a fault.

    It imports `server.web` only here: the extra `web` may be missing, and a server without HTTP starts sooner.
    """
    try:
        opening = importlib.import_module("server.web.opening")
    except ImportError:
        faults.append("--http-port: needs Starlette and uvicorn: pip install 'babelserve[web]'")
        return None
    try:
        return opening.open_http(
            settings, translator, calls, access, long_messages, connections_of(HTTP_SHARE), lambda: health.is_serving
        )
    except OSError as error:
        where, reason = f"{settings.host} port {settings.http_port}", str(error.strerror).partition(" (")[0]
        faults.append(f"--http-port: cannot listen on {where}: {reason}")
        return None
