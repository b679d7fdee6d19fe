"""Loads what is in the folder of models: everything at the start, then what changes.

The highest good version of a model is served. A new version is verified, warmed up and translates its golden sentence
before it takes over. A faulty one is refused, with its faults in the log, and the next lower one is tried, down to the
served one. A version whose folder has gone is served until another takes over, a model until its folder has gone. A
folder without any bundle is taken for a missing mount. No more than `_MOST_TRIED` versions of a model are tried, so
that many faulty ones do not keep the other models waiting.
"""

import asyncio
import functools
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from server.allocator import collect_garbage, memory_returned
from server.bundle.manifest_file import read_manifest
from server.engine.cores import Cores
from server.errors import BundleError, NotServing, SettingsError, StartupError
from server.models.choosing import can_use_cuda, choose_variant
from server.models.folder import FoundBundle, find_models, nothing_in
from server.models.loading import Share, load_model
from server.models.machine import usable_cores
from server.models.model import Model, ServedModel
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.threads import LANE_NICENESS, be_nice

logger = logging.getLogger(__name__)

_AGAIN_SECONDS = 5.0  # until a model that could not be loaded on demand is tried again
_MOST_TRIED = 32

_Versions = list[FoundBundle]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Change:
    """A model to serve in place of the one with that name; None removes that one."""

    name: str
    model: Model | None


class FolderLoader:
    """Its methods block, and may only be called one at a time, which `in_background` ensures.

    Args:
        directory: the folder of models.
        settings: of the server.
        metrics: are told of every load.
        clock: seconds, monotonic.

    Attributes:
        turn: held by what changes the served models, from a look at the folder until its changes are made.
    """

    def __init__(
        self,
        directory: Path,
        settings: Settings,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._metrics = metrics
        self._cores = Cores(usable_cores())
        self._seen: dict[str, _Versions] = {}
        self._judged: dict[str, _Versions] = {}
        self._served: dict[str, FoundBundle] = {}
        self._pinned: set[str] = set()
        self._faults: dict[Path, str] = {}
        self._told: list[str] = []
        self._failed: dict[str, float] = {}  # models that could not be loaded on demand, and when
        self._clock = clock
        self.turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "model-loader", functools.partial(be_nice, LANE_NICENESS))

    async def in_background(self, work: Callable[..., _T], *arguments: object) -> _T:
        """Calls a method of this object on its thread, after the calls that came before."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def read_all(self) -> list[ServedModel]:
        """Reads the manifest of every model, and loads no model.

        Raises:
            StartupError: there is no good model; lists all faults.
        """
        found, faults = self._look_at_first()
        models = [model for name in found for model in self._read(name, faults)]
        self._check(models, faults)
        return models

    def load_one(self, name: str) -> Model:
        """Loads the highest good version of a model, served or not. Raises NotServing if there is none."""
        change = None
        has_just_failed = self._clock() < self._failed.get(name, -math.inf) + _AGAIN_SECONDS
        if name in self._seen and not has_just_failed:  # a model that is not in `_seen` is about to be removed
            self._served.pop(name, None)
            change = self.load(name)
        if change is None or change.model is None:
            if not has_just_failed:
                self._failed[name] = self._clock()
            raise NotServing(f"model {name} cannot be loaded; the server's log says why")
        return change.model

    def found(self) -> dict[str, _Versions]:
        """Returns what is in the folder: the versions of each name, the highest first. Raises SettingsError."""
        return find_models(self._directory)[0]

    def load_highest(self, name: str) -> Model:
        """Loads the highest good version of a model, served or not, and makes it follow its folder.

        Raises:
            StartupError: there is none; lists all faults. Nothing has changed.
        """
        before = self._served.pop(name, None), name in self._pinned
        self._seen = self.found()
        self._pinned.discard(name)
        faults: list[str] = []
        change = self.load(name, faults) if name in self._seen else None
        if change is None or change.model is None:
            if before[0] is not None:
                self._served[name] = before[0]
            if before[1]:
                self._pinned.add(name)
            raise BundleError(faults or [f"{self._directory / name} holds no bundle"])
        return change.model

    def load_version(self, bundle: FoundBundle) -> Model:
        """Loads one bundle. Raises BundleError, which lists its faults."""
        faults: list[str] = []
        model = self._try(bundle, faults)
        if model is None:
            raise BundleError(faults)
        return model

    def pin(self, name: str) -> None:
        """Leaves a model as it is, whatever comes into its folder, until the folder has gone."""
        self._pinned.add(name)

    def follows(self, name: str) -> bool:
        """Returns whether new versions in the folder of a model are loaded."""
        return name not in self._pinned

    def fault_of(self, bundle: FoundBundle) -> str:
        """Returns what was wrong with a bundle at the last try; empty for nothing."""
        return self._faults.get(bundle.directory, "")

    def load_all(self) -> list[Model]:
        """Loads every good model.

        Raises:
            StartupError: there is none; lists all faults.
        """
        found, faults = self._look_at_first()
        changes = [self.load(name, faults) for name in found]
        models = [change.model for change in changes if change is not None and change.model is not None]
        try:
            self._check(models, faults)
        except SettingsError:
            for model in models:
                model.stop()
            raise
        return models

    def changed(self) -> list[str]:
        """Returns the names of models whose folders have changed since they were loaded, but not between two looks.

        The files of a bundle are written one after the other, so a folder that still changes is not whole.
        """
        try:
            found, faults = find_models(self._directory)
        except SettingsError as error:
            found, faults = {}, error.faults
        if not any(found.values()):
            reasons = faults or [f"{self._directory} holds none"]
            self._tell([f"they stay as they are: {reason}" for reason in reasons])
            return []
        self._tell(faults)
        seen, self._seen = self._seen, found
        names = found.keys() | self._judged.keys()
        return sorted(name for name in names if found.get(name) == seen.get(name) != self._judged.get(name))

    def load(self, name: str, faults: list[str] | None = None) -> Change | None:
        """Loads the highest good version of a model, unless it is served.

        Args:
            name: of the model.
            faults: a list that takes the faults of bad versions.

        Returns:
            What must be done, or None for nothing.
        """
        versions = self._seen.get(name)
        if versions is None:
            self._judged.pop(name, None)
            was_served = self._served.pop(name, None) is not None or name in self._pinned
            self._pinned.discard(name)
            return Change(name, None) if was_served else None
        if versions:
            self._metrics.catalogue.add_model(name)
        self._judged[name] = versions
        if name in self._pinned:
            return None
        for bundle in versions[:_MOST_TRIED]:
            if bundle == self._served.get(name):
                return None
            model = self._try(bundle, faults if faults is not None else [])
            if model is not None:
                self._served[name] = bundle
                return Change(name, model)
        return None

    def _look_at_first(self) -> tuple[dict[str, _Versions], list[str]]:
        found, faults = find_models(self._directory)
        self._tell(faults)
        self._seen = found
        return found, faults

    def _tell(self, faults: list[str]) -> None:
        """Logs the faults of the folder, once as long as they stay the same."""
        for fault in faults:
            if fault not in self._told:
                logger.warning("models: %s", fault)
        self._told = faults

    def _read(self, name: str, faults: list[str]) -> Iterator[ServedModel]:
        """Yields what is known of the highest version with a good manifest, if there is one."""
        self._metrics.catalogue.add_model(name)
        self._judged[name] = self._seen[name]
        for bundle in self._seen[name]:
            settings = replace(self._settings, bundle=bundle.directory)
            try:
                variant = choose_variant(settings, has_cuda=can_use_cuda())
                manifest = read_manifest(bundle.directory)
                if variant not in manifest.variants:
                    raise BundleError([f"{bundle.directory}: has no variant {variant}"])
            except BundleError as error:
                self._refuse(bundle, error, faults)
                continue
            self._served[name] = bundle
            manifest = replace(manifest, name=name, version=bundle.version or manifest.version)
            metrics = self._metrics.of_model(name, manifest.version)
            yield ServedModel(manifest=manifest, variant=variant, metrics=metrics)
            return

    def _refuse(self, bundle: FoundBundle, error: StartupError, faults: list[str]) -> None:
        self._metrics.catalogue.count_load(bundle.name, is_successful=False)
        facts = {"model": bundle.name, "model_version": bundle.version, "error": "; ".join(error.faults)}
        logger.error("a model is refused", extra={"facts": facts})
        self._faults[bundle.directory] = facts["error"]
        faults += error.faults

    def _try(self, bundle: FoundBundle, faults: list[str]) -> Model | None:
        """Returns a warm model, or None if the bundle is bad. Logs and counts either."""
        model = self._warm(bundle, faults)
        if model is None:
            collect_garbage()  # frees what the model held when it failed
        return model

    def _warm(self, bundle: FoundBundle, faults: list[str]) -> Model | None:
        started = time.monotonic()
        settings = replace(self._settings, bundle=bundle.directory)
        share = Share(num_models=sum(map(bool, self._seen.values())), cores=self._cores)
        facts: dict[str, str | float] = {"model": bundle.name, "model_version": bundle.version}
        try:
            with memory_returned():
                model = load_model(settings, self._metrics, share, name=bundle.name, version=bundle.version)
        except StartupError as error:
            self._refuse(bundle, error, faults)
            return None
        except Exception as error:  # whatever the error is, the other models are served
            self._metrics.catalogue.count_load(bundle.name, is_successful=False)
            logger.exception("a model cannot be loaded", extra={"facts": facts})
            faults.append(f"{bundle.directory}: cannot be loaded: {type(error).__name__}")
            self._faults[bundle.directory] = faults[-1]
            return None
        self._faults.pop(bundle.directory, None)
        seconds = time.monotonic() - started
        self._metrics.catalogue.load_seconds.observe(seconds)
        self._metrics.catalogue.count_load(bundle.name, is_successful=True)
        facts |= {"model_version": model.manifest.version, "variant": model.variant, "seconds": round(seconds, 3)}
        logger.info("a model has been loaded", extra={"facts": facts})
        return model

    def _check(self, models: Sequence[ServedModel], faults: list[str]) -> None:
        if not models:
            raise BundleError(faults or [nothing_in(self._directory)])
        names = [model.manifest.name for model in models]
        missing = [name for name in self._settings.preferred_models if name not in names]
        if missing:
            raise SettingsError([f"--default: {name} is not served; {', '.join(names)} are" for name in missing])
