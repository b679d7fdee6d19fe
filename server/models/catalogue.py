"""The served models. A request borrows a model, and gives it back when the request ends.

A model that is replaced or removed gets no more requests and is retired. It answers the requests that have begun on it,
and is unloaded when the last of them has ended. So one version answers a request from its beginning to its end. Several
versions of a model may be served side by side and share its requests (`server.models.traffic_split`).

A model on offer is loaded when a request first needs it, one model at a time. Before that other models leave memory
until all fit into the budget: the least recently used first, and models without running requests before others.
Requests for other models go on meanwhile.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence

from server.bundle.manifest import Manifest
from server.errors import DeadlineExceeded, ModelNotFound, NotServing, PreconditionFailed
from server.models.loading import needed_bytes
from server.models.loading_turns import LoadingTurns
from server.models.model import Model, ServedModel
from server.models.on_demand import OnDemand
from server.models.residents import Resident, Retired, ServedVersions, VersionHistory
from server.models.traffic_split import PERCENT, TrafficSplit
from server.telemetry.catalogue_metrics import CatalogueMetrics


class Catalogue:
    """All models by name, on the event loop's thread. It is empty until the first model is put in.

    Args:
        metrics: of the server's models.
        preferred: names of the models that come first, in this order. The others follow by name.
        on_demand: proves and loads models on offer; None if all models are in memory.
        budget_bytes: what loaded models may take, by `needed_bytes`; None for no limit.

    Attributes:
        history: the versions that have been served.
        is_open: whether any model has ever been served. If not, the server is still loading.
        on_change: is called when other models or versions are served.
    """

    def __init__(
        self,
        metrics: CatalogueMetrics,
        preferred: Sequence[str] = (),
        on_demand: OnDemand | None = None,
        budget_bytes: int | None = None,
    ) -> None:
        self._metrics = metrics
        self.preferred = list(preferred)
        self.history = VersionHistory()
        self._on_demand = on_demand
        self._budget_bytes = budget_bytes
        self._offers: dict[str, ServedModel] = {}  # models that are not in memory
        self._residents: dict[str, ServedVersions] = {}  # least recently used first
        self._loading = LoadingTurns(self._prove, self._load)
        self._together = asyncio.Lock()  # held while several models are loaded for one request; `_kept` has their names
        self._kept: Sequence[str] = ()
        self._retired = Retired(metrics, self._tell)
        self._models: tuple[ServedModel, ...] = ()
        self._manifests: tuple[Manifest, ...] = ()
        self.is_open = False
        self.on_change: Callable[[], None] = lambda: None

    @property
    def names(self) -> list[str]:
        """The names of the served models; may be empty."""
        return [each.name for each in self._manifests]

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """The served models, in the order in which they are asked. The first is the default.

        Raises:
            NotServing: no model is served, yet or any more.
        """
        self._check_any()
        return self._models

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """The manifests of `models`. They keep no model in memory. The tuple is the same one until a model changes.

        Raises:
            NotServing: no model is served, yet or any more.
        """
        self._check_any()
        return self._manifests

    @property
    def num_versions(self) -> int:
        """How many versions of all models are served, loaded or not."""
        return len(self._offers) + sum(len(each.versions) for each in self._residents.values())

    async def borrow(
        self, names: Sequence[str], key: str, deadline: float, held: contextlib.ExitStack
    ) -> dict[str, Model]:
        """Returns models by name. They stay in memory until `held` is closed, even if they are removed meanwhile.

        Models on offer are loaded first, once for all requests that wait for them.

        Args:
            names: of the models, each once.
            key: the request's traffic key, which decides between versions.
            deadline: instant of `time.monotonic` until which loading may take.
            held: gives the models back when it is closed.

        Raises:
            ModelNotFound: a model is not served any more.
            NotServing: a model cannot be loaded.
            PreconditionFailed: all models together are beyond the budget.
            DeadlineExceeded: loading takes too long.
        """
        if not all(name in self._residents for name in names):
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._load_all(names)
            except TimeoutError as error:
                raise DeadlineExceeded(f"the time was over before model {', '.join(names)} was loaded") from error
        return {name: self._lend(name, key, held) for name in names}

    def offer(self, model: ServedModel) -> None:
        """Serves a model that is loaded only when a request needs it."""
        self._offers[model.manifest.name] = model
        self._arrange()

    def put(self, model: Model) -> None:
        """Serves a warm model in place of all versions of that name."""
        name = model.manifest.name
        self._offers.pop(name, None)
        old = self._residents.pop(name, None)
        self._residents[name] = ServedVersions.only(model)
        self.history.note(name, model.manifest.version)
        self._arrange()
        self._retired.add_all(old, "replaced")

    def add(self, model: Model) -> None:
        """Serves a warm version, as yet without requests, beside at least one other version of the model."""
        self._residents[model.manifest.name].versions[model.manifest.version] = Resident(model)
        self._arrange()

    def split(self, name: str, split: TrafficSplit) -> None:
        """Makes the versions of a model, all of them in memory, share its requests from now on."""
        self._residents[name].split = split
        if len(split.shares) == 1:
            self.history.note(name, split.main)
        self._arrange()

    def drop(self, name: str, version: str) -> asyncio.Event:
        """Stops serving a version without requests. The returned event is set when it has left memory."""
        served = self._residents[name]
        assert not served.split.percent(version), "requests would go to nobody"
        resident = served.versions.pop(version)
        self._arrange()
        self._retired.add(resident, "removed")
        return resident.gone

    def remove(self, name: str) -> None:
        """Stops serving a model, in all versions."""
        self._offers.pop(name, None)
        self.history.forget(name)
        old = self._residents.pop(name, None)
        self._arrange()
        self._retired.add_all(old, "removed")

    def loaded(self, name: str) -> tuple[Sequence[Model], TrafficSplit | None]:
        """Returns the served versions of a model that are in memory, and how they share its requests."""
        served = self._residents.get(name)
        return ([each.model for each in served.versions.values()], served.split) if served is not None else ([], None)

    def versions(self) -> list[ServedModel]:
        """Returns all versions of all models that are served, in memory or not."""
        in_memory = [each.model for served in self._residents.values() for each in served.versions.values()]
        return [*self._offers.values(), *in_memory]

    async def make_room(self, needed: int = 0) -> None:
        """Unloads the least recently used models until `needed` bytes more fit into the budget."""
        while self._budget_bytes is not None and self._residents and self._used_bytes + needed > self._budget_bytes:
            # `min` returns the first of equal models, which is the least recently used.
            name = min(self._residents, key=lambda name: (name in self._kept, self._residents[name].num_loans > 0))
            resident = self._residents.pop(name).main  # a model that is loaded on demand has no other version
            model = resident.model
            self.offer(ServedModel(manifest=model.manifest, variant=model.variant, metrics=model.metrics))
            del model
            self._retired.add(resident, "evicted")
            gone = resident.gone
            del resident
            await gone.wait()

    def are_ready(self) -> Mapping[str, bool]:
        """Returns for each model whether requests for it are welcome."""
        loaded = {name: each.is_ready() for name, each in self._residents.items()}
        return loaded | dict.fromkeys(self._offers, True)

    def is_alive(self) -> bool:
        """Returns whether every engine runs or may be brought back. If not, the process must end."""
        return all(each.model.supervisor.is_alive() for each in self._all())

    def stop(self) -> None:
        """Ends all engines. It blocks, so it runs on another thread, and the event loop uses the catalogue no more."""
        for each in self._all():
            each.model.stop()

    @property
    def _used_bytes(self) -> int:
        return sum(each.needed_bytes for each in self._residents.values())

    def _all(self) -> list[Resident]:
        served = [each for versions in self._residents.values() for each in versions.versions.values()]
        return served + self._retired.in_memory

    def _check_any(self) -> None:
        if not self._models:
            raise NotServing("no model is served" if self.is_open else "the server is loading its model")

    def _check_budget(self, names: Sequence[str]) -> None:
        served = {each.manifest.name: each for each in self._models}
        needed = sum(needed_bytes(served[name].manifest, served[name].variant) for name in names if name in served)
        if self._budget_bytes is not None and needed > self._budget_bytes:
            sizes = f"{needed / (1 << 20):.0f} MiB together, --models-memory is {self._budget_bytes / (1 << 20):.0f}"
            raise PreconditionFailed(f"models {', '.join(names)} take {sizes}")

    async def _load_all(self, names: Sequence[str]) -> None:
        """Loads models until all of them are in memory at the same moment. Then they can be lent together.

        If they were lent one after the other, a request would hold one while it waits for room for the next, and two
        requests could wait for each other.
        """
        if len(names) == 1:
            await self._load_missing(names)
            return
        async with self._together:
            self._kept = names
            try:
                self._check_budget(names)
                await self._load_missing(names)
            finally:
                self._kept = ()

    async def _load_missing(self, names: Sequence[str]) -> None:
        while missing := [name for name in names if name not in self._residents]:
            if missing[0] not in self._offers:
                raise ModelNotFound(f"model: {missing[0]} is not served here any more")
            await self._loading.wait_for(missing[0])

    async def _prove(self, name: str) -> None:
        assert self._on_demand is not None, "nothing is offered without it"
        await self._on_demand.prove(name)

    async def _load(self, name: str) -> None:
        offer = self._offers.get(name)
        if offer is not None:
            assert self._on_demand is not None, "nothing is offered without it"
            await self.make_room(needed_bytes(offer.manifest, offer.variant))
            self.put(await self._on_demand.load(name))

    def _lend(self, name: str, key: str, held: contextlib.ExitStack) -> Model:
        served = self._residents[name] = self._residents.pop(name)
        resident = served.versions[served.split.choose(name, key)]
        resident.num_loans += 1
        held.callback(self._take_back, resident)
        return resident.model

    def _take_back(self, resident: Resident) -> None:
        resident.num_loans -= 1
        self._retired.unload_unused(resident)

    def _arrange(self) -> None:
        served = self._offers | {name: each.main.model for name, each in self._residents.items()}
        self._models = tuple(served[name] for name in sorted(served, key=lambda name: (self._rank(name), name)))
        self._manifests = tuple(each.manifest for each in self._models)
        self.is_open = self.is_open or bool(served)
        self._tell()
        self.on_change()

    def _rank(self, name: str) -> int:
        return self.preferred.index(name) if name in self.preferred else len(self.preferred)

    def _tell(self) -> None:
        percents: dict[tuple[str, str, str], int] = {}
        for model in self._offers.values():
            percents[model.manifest.name, model.manifest.version, model.sha256] = PERCENT
        for name, served in self._residents.items():
            for version, each in served.versions.items():
                percents[name, version, each.model.sha256] = served.split.percent(version)
        num_offers, num_retired = len(self._offers), len(self._retired.in_memory)
        counts = {"loaded": self.num_versions - num_offers, "unloaded": num_offers, "retired": num_retired}
        self._metrics.set_models(counts, percents)
