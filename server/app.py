"""The server's life: listen, load, serve, drain.

SIGTERM or SIGINT: health says NOT_SERVING; requests are taken for the drain delay yet, while balancers look elsewhere.
Then new ones are answered UNAVAILABLE and running ones finish, for at most the drain timeout; what is left is answered
UNAVAILABLE too.
A second signal leaves at once. Without the delay, rolling updates lose requests (measured: 4 of 3600).
"""

import asyncio
import contextlib
import logging
import os
import signal
import ssl
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc
from grpc_channelz.v1.channelz import add_channelz_servicer
from grpc_reflection.v1alpha.reflection import SERVICE_NAME as REFLECTION_NAME
from grpc_reflection.v1alpha.reflection import enable_server_reflection
from prometheus_client import CollectorRegistry, start_http_server

from server.errors import SettingsError
from server.models.loading import LoadedModel, load_model
from server.models.machine import process_age_seconds
from server.rpc.health import HEALTH_NAME, Health
from server.rpc.interceptors import CallInterceptor
from server.rpc.service import SERVICE_NAME, TranslationService
from server.settings.settings import Settings
from server.telemetry.log import set_up_logging
from server.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 8 << 20
_HANG_SECONDS = 5.0  # after the longest deadline: an engine that has not answered by then hangs
_QUIET_SECONDS = 0.1
_LAST_CALLS_SECONDS = 2.0  # for that quiet to come
_LAST_GRACE_SECONDS = 1.0  # for answers on their way, before streams that never end (health watches) are cut
_ENGINE_STOP_SECONDS = 10.0
_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 16 << 10),
    ("grpc.max_concurrent_streams", 1024),
    ("grpc.so_reuseport", 0),  # or a second server on the port would start silently and take connections
    ("grpc.keepalive_time_ms", 60_000),  # dead clients hold rows; gRPC's default is two hours
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 30_000),
    ("grpc.max_connection_age_ms", 30 * 60_000),  # rebalances connections behind L4 balancers
    ("grpc.max_connection_age_grace_ms", 10 * 60_000),
)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the server listens; the real numbers, where 0 was asked for."""

    translation: int
    health: int
    admin: int
    metrics: int


async def serve(settings: Settings, version: str) -> None:
    """Runs the server until a signal stops it.

    Args:
        settings: checked.
        version: of this build.

    Raises:
        StartupError: it cannot serve.
    """
    metrics = Metrics(CollectorRegistry())
    log = set_up_logging(metrics, settings.log_level)
    stop = _stop_on_signals()
    service = TranslationService(
        metrics, beam_size=settings.beam_size, max_request_seconds=settings.max_request_seconds
    )
    interceptor = CallInterceptor(metrics, settings.max_request_seconds + _HANG_SECONDS)
    health = Health(metrics)
    try:
        async with _listening(settings, metrics, service, interceptor, health) as (server, ports):
            loaded = await _load_unless_stopped(settings, metrics, stop)
            if loaded is None:
                return
            service.model = loaded.served
            metrics.set_build_info(version=version, variant=loaded.served.variant, device=loaded.device)
            watching = asyncio.create_task(health.watch(loaded.engine.is_alive))
            await health.set_serving(True)
            metrics.start_duration_seconds.set(process_age_seconds())
            _announce(settings, ports, loaded)
            await stop.wait()
            await _drain(settings, server, interceptor, health, watching, loaded)
    finally:
        logging.getLogger().removeHandler(log)
        log.close()


@contextlib.asynccontextmanager
async def _listening(
    settings: Settings, metrics: Metrics, service: TranslationService, interceptor: CallInterceptor, health: Health
) -> AsyncIterator[tuple[grpc.aio.Server, Ports]]:
    """Opens all ports; requests are answered UNAVAILABLE, health checks NOT_SERVING, until a model is there."""
    await health.set_serving(False)
    await health.set_alive(True)
    servers = _make_servers(settings, service, interceptor, health)
    wanted = (
        ("--port", settings.host, settings.port, _credentials(settings)),
        ("--health-port", settings.host, settings.health_port, None),
        ("--admin-port", "127.0.0.1", settings.admin_port, None),
    )
    ports: list[int] = []
    faults: list[str] = []
    for each, (flag, host, number, credentials) in zip(servers, wanted, strict=True):
        try:
            ports.append(_bind(each, host, number, credentials))
        except RuntimeError:
            faults.append(f"{flag}: cannot listen on {host} port {number}: does something listen there already?")
    try:
        page, page_thread = start_http_server(settings.metrics_port, settings.host, metrics.registry)
    except OSError as error:
        where = f"{settings.host} port {settings.metrics_port}"
        raise SettingsError([*faults, f"--metrics-port: cannot listen on {where}: {error.strerror}"]) from error
    try:
        if faults:
            raise SettingsError(faults)
        for each in servers:
            await each.start()
        yield servers[0], Ports(ports[0], ports[1], ports[2], page.server_port)
    finally:
        for each in servers:
            await each.stop(None)
        await asyncio.to_thread(page.shutdown)
        page.server_close()
        page_thread.join()


def _make_servers(
    settings: Settings, service: TranslationService, interceptor: CallInterceptor, health: Health
) -> tuple[grpc.aio.Server, grpc.aio.Server, grpc.aio.Server]:
    """Returns the translation, health and admin servers."""
    server = grpc.aio.server(interceptors=[interceptor], options=_OPTIONS)
    server.add_generic_rpc_handlers((service.handler(),))
    health.add_to(server)
    if settings.reflection:
        enable_server_reflection([SERVICE_NAME, HEALTH_NAME, REFLECTION_NAME], server)
    health_server = grpc.aio.server(options=_OPTIONS)
    health.add_to(health_server)
    admin_server = grpc.aio.server(options=_OPTIONS)
    add_channelz_servicer(admin_server)  # type: ignore[arg-type] # it takes both kinds
    return server, health_server, admin_server


def _bind(server: grpc.aio.Server, host: str, port: int, credentials: grpc.ServerCredentials | None) -> int:
    if credentials is None:
        return server.add_insecure_port(_address(host, port))
    return server.add_secure_port(_address(host, port), credentials)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _credentials(settings: Settings) -> grpc.ServerCredentials | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    try:
        # gRPC would only say that it cannot listen. The password keeps OpenSSL from asking the terminal for one.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key, password="")
        pair = (settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())
    except OSError as error:  # SSLError is one
        message = f"--tls-cert, --tls-key: are no PEM certificate chain and its unencrypted private key: {error}"
        raise SettingsError([message]) from error
    return grpc.ssl_server_credentials([pair])


async def _load_unless_stopped(settings: Settings, metrics: Metrics, stop: asyncio.Event) -> LoadedModel | None:
    """Loads the model on another thread, so that health checks are answered meanwhile; None if a signal came first."""
    loading = asyncio.create_task(asyncio.to_thread(load_model, settings, metrics))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    loaded = await loading  # a thread cannot be interrupted; it takes a second or two
    if not stop.is_set():
        return loaded
    loaded.engine.stop()
    return None


async def _drain(
    settings: Settings,
    server: grpc.aio.Server,
    interceptor: CallInterceptor,
    health: Health,
    watching: "asyncio.Task[None]",
    loaded: LoadedModel,
) -> None:
    logger.info("draining")
    await health.set_serving(False)
    await asyncio.sleep(settings.drain_delay)
    interceptor.refuse()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(interceptor.wait_until_idle(), settings.drain_timeout)
    watching.cancel()  # or it would take the stopped engine for a dead one
    # Not on asyncio's own threads, which would be waited for at exit even if the engine hangs.
    stopper = threading.Thread(target=loaded.engine.stop, name="engine-stop", daemon=True)
    stopper.start()
    await asyncio.to_thread(stopper.join, _ENGINE_STOP_SECONDS)
    # A call that arrives in the very moment that gRPC stops is answered CANCELLED, which nobody retries: let those who
    # still call hear UNAVAILABLE, and go elsewhere, first.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(interceptor.wait_until_quiet(_QUIET_SECONDS), _LAST_CALLS_SECONDS)
    await server.stop(_LAST_GRACE_SECONDS)
    logger.info("stopped")


def _stop_on_signals() -> asyncio.Event:
    """Returns an event that the first SIGTERM or SIGINT sets; the second ends the process there and then."""
    stop = asyncio.Event()

    def receive(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, receive, number)
    return stop


def _announce(settings: Settings, ports: Ports, loaded: LoadedModel) -> None:
    served, manifest = loaded.served, loaded.served.manifest
    message = (
        f"babelserve: SERVING {manifest.name} {manifest.version} ({served.variant}, lanes: {loaded.num_lanes}) on "
        f"{_address(settings.host, ports.translation)} after {process_age_seconds():.2f} s; "
        f"health on port {ports.health}, admin on {ports.admin}, "
        f"metrics on http://{_address(settings.host, ports.metrics)}/metrics"
    )
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
