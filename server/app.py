"""The server's life: listen, load, serve, drain.

SIGTERM or SIGINT: health says NOT_SERVING; requests are taken for the drain delay yet, while balancers look elsewhere,
after a SIGINT (Ctrl-C) only until nobody has called for a second. Then new ones are answered UNAVAILABLE and running
ones finish, for at most the drain timeout; what is left is answered UNAVAILABLE too.
A second signal leaves at once. When the engine is lost (`server.models.supervisor`), everybody has been answered
UNAVAILABLE already: their answers go out, and the process ends with an exit code of its own, within seconds.
Without the delay, rolling updates lose requests (measured: 4 of 3600).
SIGHUP reads keys and certificates again there and then; they are read again by themselves when they change.
"""

import asyncio
import contextlib
import logging
import os
import threading

import grpc  # noqa: F401 # before babelserve, whose client would have gRPC keep its lines to itself
from prometheus_client import CollectorRegistry

from server.errors import StartupError
from server.listening import Listening, listening
from server.models.administration import Administration
from server.models.catalogue import Catalogue
from server.models.first_models import load_first_models, wait_for_defaults
from server.models.glossaries import Glossaries
from server.models.loading import process_memory
from server.models.machine import process_age_seconds, resident_bytes
from server.models.model import ServedModel
from server.models.model_memory import ModelMemory
from server.models.start_up import describe, growth_of, misfits, new_catalogue
from server.rpc.health import Health
from server.rpc.intake import MAX_MESSAGE_BYTES, messages_at_once
from server.rpc.servers import address
from server.settings.next_steps import next_steps
from server.settings.settings import Settings
from server.signals import Stop, reload_on_signal, stop_on_signals
from server.telemetry.log import LineHandler, set_up_logging
from server.telemetry.metrics import Metrics
from server.telemetry.stderr import is_watched, log_loop_exceptions, take_stderr, tell
from server.telemetry.trace_exporters import open_tracing
from server.threads import be_prompt, tune_interpreter
from server.translation.calls import Calls
from server.translation.memory import MemoryBudget, requests_share
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

logger = logging.getLogger(__name__)

EXIT_ENGINE_LOST = 3

_HANG_SECONDS = 5.0  # after the longest deadline: an engine that has not answered by then hangs
_NOBODY_SECONDS = 1.0  # without a call, after which Ctrl-C does not wait for any
_QUIET_SECONDS = 0.1
_LAST_CALLS_SECONDS = 2.0  # for that quiet to come
_ENGINE_STOP_SECONDS = 10.0
_MOST_LEAVING_SECONDS = 8.0  # of a process whose engine is lost: twice what it should take


async def serve(settings: Settings, version: str) -> None:
    """Runs the server until a signal stops it.

    Args:
        settings: checked.
        version: of this build.

    Raises:
        StartupError: it cannot serve.
        BeginAnew: the process must begin anew.
    """
    metrics, tracing = Metrics(CollectorRegistry()), open_tracing(settings.traces, version)
    log, give_stderr_back = set_up_logging(metrics, settings.log_level), take_stderr(metrics)
    log_loop_exceptions(asyncio.get_running_loop())
    stop, reload = stop_on_signals(), reload_on_signal()
    memory = MemoryBudget(process_memory(settings))  # less once the model is there
    catalogue, loader = new_catalogue(settings, metrics)
    translator = Translator(
        catalogue,
        beam_size=settings.beam_size,
        max_request_seconds=settings.max_request_seconds,
        memory=memory,
        metrics=metrics.access,
        pivots=settings.pivots,
        glossaries=Glossaries(settings.glossaries, metrics.glossaries, settings.houses),
    )
    running, health = RunningCalls(), Health(metrics)
    calls = Calls(metrics, running, settings.max_request_seconds + _HANG_SECONDS, tracing)
    model_memory = ModelMemory(catalogue, settings, memory.reserve)
    admin = Administration(catalogue, loader, model_memory) if loader and settings.admin_keys else None
    updating = watching = None
    try:
        async with (
            listening(settings, metrics, translator, calls, running, health, admin, reload) as fronts,
            translator.glossaries.followed(),
        ):
            updating = await load_first_models(settings, metrics, loader, catalogue, stop)
            if not catalogue.is_open:
                return
            memory.max_bytes = _memory_of_requests(settings, catalogue)
            model_memory.follow()
            watching = asyncio.create_task(health.watch(catalogue.are_ready, catalogue.is_alive))
            await wait_for_defaults(settings, loader, catalogue, stop)
            _tell_start(metrics, version, catalogue.models[0])
            health.set_serving(True)
            tune_interpreter()
            _announce(settings, fronts, catalogue.models)
            await _serve_until(stop, watching, updating)
            if catalogue.is_alive():
                await _drain(settings, stop, fronts, running, health, watching, catalogue)
            if not catalogue.is_alive():
                await _give_up(running, log)
    except StartupError:
        await _stop_engines(catalogue, updating, watching)  # a server that has begun anew may serve a model already
        raise
    finally:
        tracing.close()
        give_stderr_back()
        logging.getLogger().removeHandler(log)
        log.close()


async def _serve_until(
    stop: asyncio.Event, watching: "asyncio.Task[None]", updating: "asyncio.Task[None] | None"
) -> None:
    """Waits for a signal or a lost engine. The models are kept up to date until then."""
    be_prompt()
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({stopping, watching}, return_when=asyncio.FIRST_COMPLETED)
    if updating is not None:
        updating.cancel()


def _tell_start(metrics: Metrics, version: str, default: ServedModel) -> None:
    """Tells what is served first, and after how long.

    A name for that model in `serve` would keep it in memory when it is replaced.
    """
    metrics.set_build_info(version=version, variant=default.variant, device=default.device)
    metrics.start_duration_seconds.set(process_age_seconds())


def _memory_of_requests(settings: Settings, catalogue: Catalogue) -> int:
    """Returns what loaded models leave. Raises SettingsError if that is too little."""
    limit = process_memory(settings)
    message_bytes = messages_at_once(limit) * MAX_MESSAGE_BYTES
    return requests_share(limit, resident_bytes(), growth_of(catalogue.models, settings), message_bytes)


async def _drain(
    settings: Settings,
    stop: Stop,
    fronts: Listening,
    running: RunningCalls,
    health: Health,
    watching: "asyncio.Task[None]",
    catalogue: Catalogue,
) -> None:
    """Ends the server's life as the module's docstring says."""
    logger.info("draining")
    health.begin_draining()
    if stop.is_by_hand:
        await _wait_for_callers(settings, running)
    else:
        await asyncio.sleep(settings.drain_delay)
    running.refuse()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(running.wait_until_idle(), settings.drain_timeout)
    await _stop_engines(catalogue, watching)
    # A call that arrives in the very moment that gRPC stops is answered CANCELLED, which nobody retries: let those who
    # still call hear UNAVAILABLE, and go elsewhere, first.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(running.wait_until_quiet(_QUIET_SECONDS), _LAST_CALLS_SECONDS)
    await fronts.drain()
    logger.info("stopped")


async def _stop_engines(catalogue: Catalogue, *using: "asyncio.Task[None] | None") -> None:
    """Ends the tasks that use the catalogue, and then all engines. It does not wait long for one that hangs."""
    for task in using:
        if task is not None:
            task.cancel()
    # Not on asyncio's own threads, which would be waited for at exit even if the engine hangs.
    stopper = threading.Thread(target=catalogue.stop, name="engine-stop", daemon=True)
    stopper.start()
    await asyncio.to_thread(stopper.join, _ENGINE_STOP_SECONDS)


async def _wait_for_callers(settings: Settings, running: RunningCalls) -> None:
    """Returns when nobody has called for a while, at the latest after the drain delay."""
    is_quiet = running.idle_seconds >= _NOBODY_SECONDS
    most = f"{settings.drain_delay:g} s, and what runs then in {settings.drain_timeout:g} s"
    wait = "" if is_quiet else f" when nobody has called for {_NOBODY_SECONDS:g} s, at the latest in {most}"
    tell(f"babelserve: stopping{wait}; Ctrl-C again ends it at once")
    if not is_quiet:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(running.wait_until_quiet(_NOBODY_SECONDS), settings.drain_delay)


async def _give_up(running: RunningCalls, log: LineHandler) -> None:
    """Lets the answers out that a lost engine has given, and ends the process.

    There is no orderly end: a lane that hangs in native code would keep it, or crash it. Whoever calls at that moment
    sees the connection break, which is UNAVAILABLE; if gRPC were stopped it would be CANCELLED, which nobody retries.
    """
    # Whatever else hangs, the event loop included, does not keep the process either.
    last = threading.Timer(_MOST_LEAVING_SECONDS, os._exit, [EXIT_ENGINE_LOST])
    last.daemon = True
    last.start()
    running.refuse()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(running.wait_until_quiet(_QUIET_SECONDS), _LAST_CALLS_SECONDS)
    log.close()
    os._exit(EXIT_ENGINE_LOST)


def _announce(settings: Settings, fronts: Listening, models: tuple[ServedModel, ...]) -> None:
    for fault in misfits(settings, [(each.manifest, each.variant) for each in models]):
        logger.warning("%s", fault)
    port, health_port, admin_port = fronts.rpc.ports
    metrics_port = fronts.metrics_port
    scheme = "http" if settings.tls_cert is None else "https"
    http = "" if fronts.http is None else f"{scheme}://{address(settings.host, fronts.http.port)}, "
    tell(
        f"babelserve: SERVING {describe(models)} on "
        f"{address(settings.host, port)} after {process_age_seconds():.2f} s; "
        f"{http}health on port {health_port}, admin on {admin_port}, "
        f"metrics on http://{address(settings.host, metrics_port)}/metrics"
        + (next_steps(settings, models[0].manifest, port, metrics_port) if is_watched() else "")
    )
