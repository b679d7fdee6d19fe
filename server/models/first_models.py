"""The models that a server begins with: loaded on a thread that may hang, within bounds, and given up at a signal.

At the start bundles are loaded unproved, because to prove them first would double the time until the server serves. If
one of a folder does not end, or takes more memory than it should, nothing but the end of the process stops it. So the
process begins anew in its own place, and proves everything before it loads anything (`server.models.proofs`).
"""

import asyncio
import logging
import os
import sys
import time

from server.errors import BundleError
from server.models.catalogue import Catalogue
from server.models.choosing import can_use_cuda
from server.models.folder import bundle_bytes
from server.models.folder_loader import FolderLoader
from server.models.folder_watch import watch_folder
from server.models.loading import process_memory
from server.models.machine import resident_bytes
from server.models.proof import size_bounds
from server.models.start_up import open_models, serve_models, stop_models
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.threads import PatientThread

logger = logging.getLogger(__name__)

_PROVES_FIRST = "_BABELSERVE_PROVES_FIRST"  # in the environment of a process that has begun anew
_LOOK_SECONDS = 0.05  # memory may grow by some hundred MiB meanwhile
_STOP_SECONDS = 2.0  # for models that are being loaded when a signal comes


class BeginAnew(Exception):
    """A bundle in the folder of models does not load within its bounds; `begin_anew` is to be called."""


def begin_anew() -> None:
    """Puts a process that proves bundles before it loads them in the place of this one."""
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _PROVES_FIRST: "1"})


async def load_first_models(
    settings: Settings, metrics: Metrics, loader: FolderLoader | None, catalogue: Catalogue, stop: asyncio.Event
) -> "asyncio.Task[None] | None":
    """Fills the catalogue. It stays empty if a signal came before any model was there.

    If the process has begun anew, the catalogue has only the first good model; see `wait_for_defaults`.

    Returns:
        What makes the catalogue follow the folder of models from now on; None if there is no folder or no model.

    Raises:
        StartupError: there is nothing to serve; lists every fault.
        BeginAnew: see there.
    """
    if loader is not None and _PROVES_FIRST in os.environ:
        return await _prove_first(loader, catalogue, stop)
    thread = PatientThread("start", 0)
    loading = asyncio.create_task(thread.do(lambda: open_models(settings, metrics, loader)))
    stopping = asyncio.create_task(stop.wait())
    guard = asyncio.create_task(_outgrown(settings, loader))
    try:
        await asyncio.wait({loading, stopping, guard}, return_when=asyncio.FIRST_COMPLETED)
        if guard.done() and not loading.done():
            if loader is None:
                raise BundleError([guard.result()])
            logger.error("models: %s; the server begins anew, and proves bundles before it loads them", guard.result())
            raise BeginAnew
        if stop.is_set():
            await asyncio.wait({loading}, timeout=_STOP_SECONDS)
    finally:
        stopping.cancel()
        guard.cancel()
    if not stop.is_set():
        serve_models(catalogue, await loading)
        return asyncio.create_task(watch_folder(loader, catalogue)) if loader is not None else None
    if loading.done() and loading.exception() is None:
        stop_models(loading.result())
    return None


async def wait_for_defaults(
    settings: Settings, loader: FolderLoader | None, catalogue: Catalogue, stop: asyncio.Event
) -> None:
    """Waits until an open catalogue has the models of `--default`, a signal comes, or an engine is lost.

    Raises:
        StartupError: one of them is refused; lists every fault.
    """
    while loader is not None and not {*settings.preferred_models} <= {*catalogue.names}:
        loader.check_refused(catalogue.names)
        if stop.is_set() or not catalogue.is_alive():
            break
        await asyncio.sleep(_LOOK_SECONDS)  # the catalogue has no event for this


async def _prove_first(loader: FolderLoader, catalogue: Catalogue, stop: asyncio.Event) -> "asyncio.Task[None] | None":
    """Waits for the first model that is good. The watch goes on, because it may be loading the next one already."""
    watching = asyncio.create_task(watch_folder(loader, catalogue))
    try:
        while not catalogue.is_open and not stop.is_set():
            loader.check_refused(catalogue.names)
            await asyncio.sleep(_LOOK_SECONDS)
    finally:
        if not catalogue.is_open:
            watching.cancel()
    return watching if catalogue.is_open else None


async def _outgrown(settings: Settings, loader: FolderLoader | None) -> str:
    """Returns words for a bundle as soon as it takes more time or memory to load than it should."""
    directory, bounds, started, before = None, None, 0.0, 0
    while True:
        now = settings.bundle if loader is None else loader.bundles.directory
        if now != directory:
            directory, started, before = now, time.monotonic(), resident_bytes()
            bounds = None if now is None else size_bounds(bundle_bytes(now))
        if bounds is not None and time.monotonic() - started > bounds.seconds:
            return f"{directory}: loading it has not ended within {bounds.seconds:.0f} s"
        if bounds is not None and resident_bytes() - before > min(bounds.memory or 0, process_memory(settings)):
            if can_use_cuda():  # whose libraries take as much as they like
                bounds = bounds._replace(memory=sys.maxsize)
            else:
                return f"{directory}: loading it takes more than {(bounds.memory or 0) >> 20} MiB of memory"
        await asyncio.sleep(_LOOK_SECONDS)
