"""`babelserve-gateway` answers over HTTP and asks a server over gRPC.

SIGTERM or SIGINT: `/healthz` says 503. Requests are taken for the drain delay yet, then refused; running ones finish.
"""

import argparse
import asyncio
import contextlib
import logging
import sys
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from server.access.access import POLL_SECONDS, Access
from server.documents.documents import Documents
from server.errors import SettingsError
from server.gateway.command import build_parser, check
from server.gateway.credentials import Credentials, watched_credentials
from server.gateway.remote import Remote
from server.gateway.upstream import Upstream
from server.models.machine import raise_file_limit
from server.settings.settings import read_origins
from server.signals import Stop, reload_on_signal, stop_on_signals
from server.telemetry.log import set_up_logging
from server.telemetry.metrics import Metrics
from server.telemetry.page import serve_page
from server.telemetry.stderr import in_one_line, log_loop_exceptions, tell
from server.translation.calls import Calls
from server.translation.long_messages import LongMessages
from server.translation.memory import MemoryBudget
from server.translation.running_calls import RunningCalls
from server.web.app import create_app
from server.web.serving import HttpServer

_EXIT_CANNOT_START = 2
_MOST_SECONDS = 3600.0  # of a call; the server's own limit comes first
_OWN_FILES = 64  # that the process opens besides connections
_QUIET_SECONDS, _LAST_CALLS_SECONDS = 0.1, 2.0  # without calls before the port closes; for that to come

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line. Raises SystemExit if it cannot serve."""
    try:
        options = build_parser().parse_args(arguments)
        check(options)
        asyncio.run(_serve(options))
    except SettingsError as error:
        for fault in error.faults:
            tell(f"babelserve-gateway: {in_one_line(fault)}")
        sys.exit(_EXIT_CANNOT_START)


async def _serve(options: argparse.Namespace) -> None:
    """Serves until a signal. Raises SettingsError."""
    metrics, stop, reload = Metrics(CollectorRegistry()), stop_on_signals(), reload_on_signal()
    log_loop_exceptions(asyncio.get_running_loop())
    access = Access(
        metrics.access, tls_cert=options.tls_cert, tls_key=options.tls_key, tls_client_ca=options.tls_client_ca
    )
    credentials = watched_credentials(options, metrics.access)
    upstream = Upstream(options.server, credentials.value if credentials else None, options.server_name)
    running = RunningCalls()
    calls = Calls(metrics, running, _MOST_SECONDS)
    backend = Remote(upstream, calls, MemoryBudget(options.memory_mib << 20), lambda: not stop.is_set())
    documents = Documents(backend)
    app = create_app(backend, LongMessages(), documents, read_origins(options.http_cors))
    try:
        server = HttpServer(
            app,
            options.host,
            options.http_port,
            min(options.max_connections, raise_file_limit() - _OWN_FILES),
            lambda: not stop.is_set(),
            lambda: access.certificates,
            documents.close,
        )
    except OSError as error:
        raise SettingsError([f"--http-port: cannot listen on {options.http_port}: {error.strerror}"]) from None
    try:
        with serve_page(options.host, options.metrics_port, metrics.registry) as metrics_port:
            log = set_up_logging(metrics, options.log_level)
            tasks = [
                asyncio.create_task(upstream.watch()),
                asyncio.create_task(_follow_files(access, credentials, upstream, reload)),
            ]
            await server.start()
            where = f"{options.host} port {server.port}, metrics on port {metrics_port}"
            tell(f"babelserve-gateway: listens on {where}, for {options.server}")
            try:
                await _serve_until(stop, options, running, documents)
            finally:
                await server.stop()
                for task in tasks:
                    task.cancel()
                await upstream.close()
                log.close()
    except OSError as error:
        raise SettingsError([f"--metrics-port: cannot listen on {options.metrics_port}: {error.strerror}"]) from None


async def _follow_files(
    access: Access, credentials: Credentials | None, upstream: Upstream, reload: asyncio.Event
) -> None:
    """Takes what changes in the files of certificates, until cancelled."""
    while True:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reload.wait(), POLL_SECONDS)
        at_once = reload.is_set()
        reload.clear()
        await asyncio.to_thread(access.renew, at_once=at_once)
        if credentials is not None:
            before = credentials.value
            await asyncio.to_thread(credentials.poll, at_once=at_once)
            if credentials.value is not before:
                upstream.renew(credentials.value)


async def _serve_until(stop: Stop, options: argparse.Namespace, running: RunningCalls, documents: Documents) -> None:
    """Serves until a signal, and drains."""
    await stop.wait()
    logger.info("draining")
    if not stop.is_by_hand:
        await asyncio.sleep(options.drain_delay)
    running.refuse()
    await documents.close()  # nobody can ask for them any more
    try:
        async with asyncio.timeout(options.drain_timeout):
            await running.wait_until_idle()
    except TimeoutError:
        logger.warning("requests still run after the drain timeout")
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(running.wait_until_quiet(_QUIET_SECONDS), _LAST_CALLS_SECONDS)


if __name__ == "__main__":
    main()
