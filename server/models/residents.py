"""Models in memory, models that are about to leave it, and the versions that were served before."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from server.allocator import collect_garbage, memory_returned
from server.models.loading import needed_bytes
from server.models.model import Model
from server.models.traffic_split import PERCENT, TrafficSplit
from server.telemetry.catalogue_metrics import CatalogueMetrics

logger = logging.getLogger(__name__)

_MOST_HISTORY = 16  # versions of a model


@dataclass(slots=True, eq=False)
class Resident:
    """A model in memory.

    Attributes:
        model: the loaded version.
        num_loans: how many requests use it.
        reason: why it leaves, one of `UNLOAD_REASONS`; empty while it stays.
        gone: is set when it has left.
    """

    model: Model
    num_loans: int = 0
    reason: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True, eq=False)
class ServedVersions:
    """The versions of one model that are in memory, by their names, and how they share its requests."""

    versions: dict[str, Resident]
    split: TrafficSplit

    @classmethod
    def only(cls, model: Model) -> "ServedVersions":
        """Returns one version with all requests."""
        version = model.manifest.version
        return cls({version: Resident(model)}, TrafficSplit.of({version: PERCENT}))

    @property
    def main(self) -> Resident:
        """The version that gets most of the requests."""
        return self.versions[self.split.main]

    @property
    def num_loans(self) -> int:
        """How many requests use any of the versions."""
        return sum(each.num_loans for each in self.versions.values())

    @property
    def needed_bytes(self) -> int:
        """See `server.models.loading.needed_bytes`."""
        return sum(needed_bytes(each.model.manifest, each.model.variant) for each in self.versions.values())

    def is_ready(self) -> bool:
        """Whether every version that gets requests is ready."""
        return all(self.versions[version].model.supervisor.is_ready() for version, _ in self.split.shares)


class Retired:
    """Models that are not served any more. Each is unloaded when no request uses it; on the event loop's thread.

    Args:
        metrics: are told of each unloaded model.
        tell: is called when the number of these models has changed.

    Attributes:
        in_memory: the models that are still in memory.
    """

    def __init__(self, metrics: CatalogueMetrics, tell: Callable[[], None]) -> None:
        self.in_memory: list[Resident] = []
        self._metrics = metrics
        self._tell = tell
        self._unloading: set[asyncio.Task[None]] = set()

    def add_all(self, served: ServedVersions | None, reason: str) -> None:
        """Takes all versions of a model, if there are any."""
        for each in served.versions.values() if served is not None else ():
            self.add(each, reason)

    def add(self, resident: Resident, reason: str) -> None:
        """Takes a model. The reason is one of `UNLOAD_REASONS`."""
        resident.reason = reason
        self.in_memory.append(resident)
        self._tell()
        self.unload_unused(resident)

    def unload_unused(self, resident: Resident) -> None:
        """Unloads a model if it is retired and no request uses it."""
        if resident.reason and not resident.num_loans:
            task = asyncio.create_task(self._unload(resident))
            self._unloading.add(task)
            task.add_done_callback(self._unloading.discard)

    async def _unload(self, resident: Resident) -> None:
        """Ends a model, and frees its memory."""
        manifest, reason = resident.model.manifest, resident.reason
        with memory_returned():
            await aside(resident.model.stop)
            self.in_memory.remove(resident)
            gone = resident.gone
            del resident
            await aside(collect_garbage)
        self._metrics.count_unload(manifest.name, reason)
        self._tell()
        facts = {"model": manifest.name, "model_version": manifest.version, "reason": reason}
        logger.info("a model has been unloaded", extra={"facts": facts})
        gone.set()


class VersionHistory:
    """Remembers the last versions of each model that had all of its requests."""

    def __init__(self) -> None:
        self._versions: dict[str, list[str]] = {}

    def of(self, name: str) -> Sequence[str]:
        """Returns a model's versions, the last one at the end."""
        return tuple(self._versions.get(name, ()))

    def note(self, name: str, version: str) -> None:
        """Notes that a version has all requests.

        If it is in the history already, the versions after it are forgotten. So a second rollback goes further back.
        """
        versions = self._versions.setdefault(name, [])
        if version in versions:
            del versions[versions.index(version) + 1 :]
        else:
            versions.append(version)
            del versions[:-_MOST_HISTORY]

    def keep_last(self, name: str) -> None:
        """Forgets all versions of a model but the last."""
        del self._versions[name][:-1]

    def forget(self, name: str) -> None:
        """Forgets a model, known or not."""
        self._versions.pop(name, None)


async def aside(work: Callable[[], object]) -> None:
    """Runs work that may take long, or for ever, on a thread that the end of the process does not wait for."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(done.set)

    thread = threading.Thread(target=run, name="unload", daemon=True)
    thread.start()
    await done.wait()
    thread.join()  # ends at once: it only has to let go of the work, and of the model that the work keeps alive
