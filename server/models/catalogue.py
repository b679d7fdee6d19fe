"""The models that are served, and who uses which: a request borrows a model, and gives it back when it has ended.

A model that is replaced or removed takes no more requests; it is retired, answers those that have begun on it, and is
unloaded when the last of them has ended. So a request is answered by one version from its beginning to its end.

Models that are only offered are loaded when they are asked for, one at a time. Before that those leave that were used
least recently, first those that nobody uses, until all fit into the budget; requests for others go on meanwhile.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from server.errors import ModelNotFound, NotServing
from server.models.loading import needed_bytes
from server.models.machine import release_freed_memory
from server.models.model import Model, ServedModel
from server.telemetry.catalogue_metrics import CatalogueMetrics

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Resident:
    """A model in memory.

    Attributes:
        num_loans: requests that use it.
        reason: why it is to leave, one of `UNLOAD_REASONS`; empty while it is not.
    """

    model: Model
    num_loans: int = 0
    reason: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # set when it has left


class Catalogue:
    """All models by name, on the event loop's thread; empty until the first is put in.

    Args:
        metrics: of the server.
        preferred: names of the models that come first, in this order; the others follow by name.
        load: loads a model that is offered; None where all are in memory. Raises NotServing.
        budget_bytes: that loaded models may take, by `needed_bytes`; None for no limit.
    """

    def __init__(
        self,
        metrics: CatalogueMetrics,
        preferred: Sequence[str] = (),
        load: Callable[[str], Awaitable[Model]] | None = None,
        budget_bytes: int | None = None,
    ) -> None:
        self._metrics = metrics
        self._preferred = list(preferred)
        self._load_model = load
        self._budget_bytes = budget_bytes
        self._offers: dict[str, ServedModel] = {}  # those that are not in memory
        self._residents: dict[str, _Resident] = {}  # least recently used first
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()  # of those who load
        self._retired: list[_Resident] = []
        self._unloading: set[asyncio.Task[None]] = set()
        self._models: tuple[ServedModel, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether anything is served."""
        return bool(self._models)

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """What is served, in the order in which models are asked; the first is the default.

        Raises:
            NotServing: nothing is, yet.
        """
        if not self._models:
            raise NotServing("the server is loading its model")
        return self._models

    @property
    def preferred(self) -> Sequence[str]:
        """Names of the models that the operator has put first."""
        return self._preferred

    async def borrow(self, name: str) -> contextlib.AbstractContextManager[Model]:
        """Returns a model for the length of a `with` block, which it outlives whatever becomes of it meanwhile.

        The block must be entered. It is loaded first if need be, for however many wait for it once.

        Raises:
            ModelNotFound: it is not served any more.
            NotServing: it cannot be loaded.
        """
        while name not in self._residents:
            if name not in self._offers:
                raise ModelNotFound(f"model: {name} is not served here any more")
            await asyncio.shield(self._start_loading(name))
        resident = self._residents[name] = self._residents.pop(name)
        resident.num_loans += 1
        return self._lend(resident)

    def offer(self, model: ServedModel) -> None:
        """Serves a model that is loaded when it is asked for."""
        self._offers[model.manifest.name] = model
        self._arrange()

    def put(self, model: Model) -> None:
        """Serves a model that is warm, in the place of the one of that name, if there is one."""
        name = model.manifest.name
        self._offers.pop(name, None)
        old = self._residents.pop(name, None)
        self._residents[name] = _Resident(model)
        self._arrange()
        if old is not None:
            self._retire(old, "replaced")

    def remove(self, name: str) -> None:
        """Serves a model no more."""
        self._offers.pop(name, None)
        old = self._residents.pop(name, None)
        self._arrange()
        if old is not None:
            self._retire(old, "removed")

    async def make_room(self, needed: int = 0) -> None:
        """Has the least recently used models leave until so many bytes more are within the budget."""
        while self._budget_bytes is not None and self._residents and self._used_bytes + needed > self._budget_bytes:
            name = next(
                (name for name, each in self._residents.items() if not each.num_loans), next(iter(self._residents))
            )
            resident = self._residents.pop(name)
            model = resident.model
            self.offer(ServedModel(manifest=model.manifest, variant=model.variant, metrics=model.metrics))
            del model
            self._retire(resident, "evicted")
            gone = resident.gone
            del resident
            await gone.wait()

    def are_ready(self) -> Mapping[str, bool]:
        """Says of each model whether requests for it are welcome."""
        loaded = {name: each.model.supervisor.is_ready() for name, each in self._residents.items()}
        return loaded | dict.fromkeys(self._offers, True)

    def is_alive(self) -> bool:
        """Says whether every engine runs or may be brought back; if not, the process is to end."""
        return all(each.model.supervisor.is_alive() for each in (*self._residents.values(), *self._retired))

    def stop(self) -> None:
        """Ends all engines; not on the event loop's thread, which calls nothing else of it by then."""
        for each in (*self._residents.values(), *self._retired):
            each.model.stop()

    @property
    def _used_bytes(self) -> int:
        return sum(needed_bytes(each.model.manifest, each.model.variant) for each in self._residents.values())

    def _start_loading(self, name: str) -> "asyncio.Task[None]":
        """Returns the one task that loads a model."""
        if name not in self._loading:
            task = self._loading[name] = asyncio.create_task(self._load(name))
            task.add_done_callback(lambda done: (self._loading.pop(name), done.cancelled() or done.exception()))
        return self._loading[name]

    async def _load(self, name: str) -> None:
        async with self._turn:
            offer = self._offers.get(name)
            if offer is not None:
                assert self._load_model is not None, "nothing is offered without it"
                await self.make_room(needed_bytes(offer.manifest, offer.variant))
                self.put(await self._load_model(name))

    @contextlib.contextmanager
    def _lend(self, resident: _Resident) -> Iterator[Model]:
        try:
            yield resident.model
        finally:
            resident.num_loans -= 1
            self._unload_unused(resident)

    def _retire(self, resident: _Resident, reason: str) -> None:
        resident.reason = reason
        self._retired.append(resident)
        self._tell()
        self._unload_unused(resident)

    def _unload_unused(self, resident: _Resident) -> None:
        if resident.reason and not resident.num_loans:
            task = asyncio.create_task(self._unload(resident))
            self._unloading.add(task)
            task.add_done_callback(self._unloading.discard)

    async def _unload(self, resident: _Resident) -> None:
        """Ends a model that nobody uses, and gives its memory back."""
        manifest, reason = resident.model.manifest, resident.reason
        await _aside(resident.model.stop)
        self._retired.remove(resident)
        gone = resident.gone
        del resident
        await _aside(release_freed_memory)
        self._metrics.count_unload(manifest.name, reason)
        self._tell()
        facts = {"model": manifest.name, "model_version": manifest.version, "reason": reason}
        logger.info("a model has been unloaded", extra={"facts": facts})
        gone.set()

    def _arrange(self) -> None:
        served = self._offers | {name: each.model for name, each in self._residents.items()}
        self._models = tuple(served[name] for name in sorted(served, key=lambda name: (self._rank(name), name)))
        self._tell()

    def _rank(self, name: str) -> int:
        return self._preferred.index(name) if name in self._preferred else len(self._preferred)

    def _tell(self) -> None:
        counts = {"loaded": len(self._residents), "unloaded": len(self._offers), "retired": len(self._retired)}
        self._metrics.set_models(counts)
        self._metrics.set_info((each.manifest.name, each.manifest.version, each.sha256) for each in self._models)


async def _aside(work: Callable[[], None]) -> None:
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
