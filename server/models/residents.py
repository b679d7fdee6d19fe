"""Models in memory, those that requests use, those that leave it, and which versions were served before."""

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
        model: the version that is loaded.
        num_loans: requests that use it.
        reason: why it is to leave, one of `UNLOAD_REASONS`; empty while it is not.
        gone: set when it has left.
    """

    model: Model
    num_loans: int = 0
    reason: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def version(self) -> str:
        """The model's."""
        return self.model.manifest.version


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
        """The version that has most of the requests."""
        return self.versions[self.split.main]

    @property
    def num_loans(self) -> int:
        """Requests that use any of them."""
        return sum(each.num_loans for each in self.versions.values())

    @property
    def needed_bytes(self) -> int:
        """See `server.models.loading.needed_bytes`."""
        return sum(needed_bytes(each.model.manifest, each.model.variant) for each in self.versions.values())

    def is_ready(self) -> bool:
        """Whether requests are welcome to every version that takes any."""
        return all(self.versions[version].model.supervisor.is_ready() for version, _ in self.split.shares)


class Retired:
    """Models that are served no more, on the event loop's thread; each is unloaded when no request uses it any more.

    Args:
        metrics: told of each that has been unloaded.
        tell: is called when their number has changed.

    Attributes:
        residents: those that are still in memory.
    """

    def __init__(self, metrics: CatalogueMetrics, tell: Callable[[], None]) -> None:
        self.residents: list[Resident] = []
        self._metrics = metrics
        self._tell = tell
        self._unloading: set[asyncio.Task[None]] = set()

    def add_all(self, served: ServedVersions | None, reason: str) -> None:
        """Takes all versions of a model, if there are any."""
        for each in served.versions.values() if served is not None else ():
            self.add(each, reason)

    def add(self, resident: Resident, reason: str) -> None:
        """Takes a model; the reason is one of `UNLOAD_REASONS`."""
        resident.reason = reason
        self.residents.append(resident)
        self._tell()
        self.unload_unused(resident)

    def unload_unused(self, resident: Resident) -> None:
        """Unloads a model if it is retired and no request uses it."""
        if resident.reason and not resident.num_loans:
            task = asyncio.create_task(self._unload(resident))
            self._unloading.add(task)
            task.add_done_callback(self._unloading.discard)

    async def _unload(self, resident: Resident) -> None:
        """Ends a model, and gives its memory back."""
        manifest, reason = resident.model.manifest, resident.reason
        with memory_returned():
            await aside(resident.model.stop)
            self.residents.remove(resident)
            gone = resident.gone
            del resident
            await aside(collect_garbage)
        self._metrics.count_unload(manifest.name, reason)
        self._tell()
        facts = {"model": manifest.name, "model_version": manifest.version, "reason": reason}
        logger.info("a model has been unloaded", extra={"facts": facts})
        gone.set()


class VersionHistory:
    """The versions that have had all requests for a model, of each model; the last ones are remembered."""

    def __init__(self) -> None:
        self._versions: dict[str, list[str]] = {}

    def of(self, name: str) -> Sequence[str]:
        """Returns a model's versions, the last at the end."""
        return tuple(self._versions.get(name, ()))

    def note(self, name: str, version: str) -> None:
        """Notes that a version has all requests.

        To return to one is to forget those since: who goes back again comes to the one before.
        """
        versions = self._versions.setdefault(name, [])
        if version in versions:
            del versions[versions.index(version) + 1 :]
        else:
            versions.append(version)
            del versions[:-_MOST_HISTORY]

    def keep_last(self, name: str) -> None:
        """Takes a model's last version for its first one."""
        del self._versions[name][:-1]

    def forget(self, name: str) -> None:
        """Forgets a model, which may be unknown."""
        self._versions.pop(name, None)


async def aside(work: Callable[[], object]) -> None:
    """Does what may take long, or for ever: on a thread that nobody waits for when the process ends."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="unload", daemon=True).start()
    await done.wait()
