"""Loads what is in the folder of models: everything at the start, then what changes.

The highest good version of a model is served. A new version is verified, warmed up and translates its golden sentence
before it takes over. A faulty one is refused, with its faults in the log, and the next lower one is tried, down to the
served one. A version whose folder has gone is served until another takes over, a model until its folder has gone. A
folder without any bundle is taken for a missing mount. No more than `_MOST_TRIED` versions of a model are tried, so
that many faulty ones do not keep the other models waiting.

While the server serves, a bundle is proved by another process before it is loaded (`server.models.proof`). At the start
it is not, which would take twice the time.
"""

import asyncio
import functools
import logging
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from server.errors import BundleError, SettingsError
from server.models.bundle_loader import BundleLoader
from server.models.folder import FoundBundle, find_models, nothing_in
from server.models.model import Model, ServedModel
from server.models.proofs import Proofs, Task, newest
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.threads import LANE_NICENESS, PatientThread

logger = logging.getLogger(__name__)

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
        proofs: of bundles that come while the server serves.

    Attributes:
        turn: held by what changes the served models, from a look at the folder until its changes are made.
        bundles: loads them one by one.
        wanted: what must be proved before models can be loaded, by their names. The event loop reads copies of it.
    """

    def __init__(self, directory: Path, settings: Settings, metrics: Metrics, proofs: Proofs) -> None:
        self._directory = directory
        self._settings = settings
        self._metrics = metrics
        self.bundles = BundleLoader(settings, metrics, proofs)
        self.wanted: dict[str, Task] = {}
        self._seen: dict[str, _Versions] = {}
        self._judged: dict[str, _Versions] = {}
        self._served: dict[str, FoundBundle] = {}
        self._pinned: set[str] = set()
        self._told: list[str] = []
        self.turn = asyncio.Lock()
        self._thread = PatientThread("model-loader", LANE_NICENESS)

    async def in_background(self, work: Callable[..., _T], *arguments: object) -> _T:
        """Calls a method of this object on its thread, after the calls that came before."""
        return await self._thread.do(functools.partial(work, *arguments))

    async def prove(self, name: str, version: str | None = None) -> None:
        """Proves a version of a model again; if none is named from the highest down to the first good one."""
        try:
            versions = (await self.in_background(self.found)).get(name, [])
        except SettingsError:  # which the load raises again
            return
        for bundle in versions[:_MOST_TRIED] if version is None else versions:
            if version in (None, bundle.version):
                await self.in_background(self.bundles.forget, bundle)
                if await self.is_good(bundle):
                    return

    async def is_good(self, bundle: FoundBundle) -> bool:
        """Returns whether a bundle may be loaded, after it is proved if that is not known."""
        is_good = await self.in_background(self.bundles.is_good, bundle, [])
        if isinstance(is_good, Task):
            await self.bundles.proofs.wait_for(is_good)
            is_good = await self.in_background(self.bundles.is_good, bundle, [])
        return is_good is True

    def tried(self, name: str) -> _Versions:
        """Returns the versions of a model that the last look at the folder has found, the highest first."""
        return self._seen.get(name, [])[:_MOST_TRIED]

    def read_all(self) -> list[ServedModel]:
        """Reads the manifest of every model, and loads no model.

        Raises:
            StartupError: there is no good model; lists all faults.
        """
        found, faults = self._look_at_first()
        models = [model for name in found if (model := self._read(name, faults)) is not None]
        self._check([model.manifest.name for model in models], faults)
        return models

    def load_one(self, name: str) -> Model | None:
        """Loads the highest good version of a model, served or not; None if there is none."""
        if name not in self._seen:  # it is about to be removed
            return None
        served = self._served.pop(name, None)
        change = self.load(name)
        if change is None and served is not None:  # so that it is tried again when a request needs it, and not before
            self._served[name] = served
        return None if change is None else change.model

    def found(self) -> dict[str, _Versions]:
        """Returns what is in the folder: the versions of each name, the highest first. Raises SettingsError."""
        return find_models(self._directory)[0]

    def load_highest(self, name: str) -> Model:
        """Loads the highest good version of a model, served or not, and makes it follow its folder.

        Raises:
            StartupError: there is none; lists all faults. Nothing has changed.
        """
        before = self._served.pop(name, None), name in self._pinned
        found = self.found()
        if name in found:  # other models may be half copied, so they must be seen twice
            self._seen = {**self._seen, name: found[name]}
        self._pinned.discard(name)
        faults: list[str] = []
        change = self.load(name, faults) if name in found else None
        if change is None or change.model is None:
            if before[0] is not None:
                self._served[name] = before[0]
            if before[1]:
                self._pinned.add(name)
            fault = "has changed while it was proved" if found.get(name) else "holds no bundle"
            raise BundleError(faults or [f"{self._directory / name} {fault}"])
        return change.model

    def load_version(self, bundle: FoundBundle) -> Model:
        """Loads one bundle. Raises BundleError, which lists its faults."""
        faults: list[str] = []
        model = self._load(bundle, faults) if self.bundles.is_good(bundle, faults) is True else None
        if model is None:
            raise BundleError(faults or [f"{bundle.directory}: has changed while it was proved"])
        return model

    def pin(self, name: str) -> None:
        """Leaves a model as it is, whatever comes into its folder, until the folder has gone."""
        self._pinned.add(name)

    def follows(self, name: str) -> bool:
        """Returns whether new versions in the folder of a model are loaded."""
        return name not in self._pinned

    def load_all(self) -> list[Model]:
        """Loads every good model.

        Raises:
            StartupError: there is none; lists all faults.
        """
        found, faults = self._look_at_first()
        changes = [self.load(name, faults, is_start=True) for name in found]
        models = [change.model for change in changes if change is not None and change.model is not None]
        try:
            self._check([model.manifest.name for model in models], faults)
        except SettingsError:
            for model in models:
                model.stop()
            raise
        return models

    def check_refused(self, served: Collection[str]) -> None:
        """Checks what was refused since the first look at the folder, as `load_all` does.

        Args:
            served: names of the models that are served by now.

        Raises:
            StartupError: every version of every model was refused, or of a model of `--default`, for good or twice;
                lists all faults.
        """
        tried, bundles = {name: self.tried(name) for name in self._seen}, self.bundles
        good = [name for name, own in tried.items() if name in served or any(map(bundles.may_come, own))]
        if tried:
            self._check(good, [fault for own in tried.values() for each in own for fault in bundles.faults_of(each)])

    def changed(self) -> list[str]:
        """Returns the names of models whose folders have changed since they were loaded, but not between two looks.

        The files of a bundle are written one after the other, so a folder that still changes is not whole. What has
        come last is first.
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
        changed = [name for name in names if found.get(name) == seen.get(name) != self._judged.get(name)]
        self.wanted = {name: task for name, task in self.wanted.items() if name in changed}
        return sorted(changed, key=lambda name: (-max(map(newest, found.get(name, ())), default=0), name))

    def load(self, name: str, faults: list[str] | None = None, *, is_start: bool = False) -> Change | None:
        """Loads the highest good version of a model, unless it is served.

        If a version must be proved first, it is in `wanted`, and `load` is called again when it is proved.

        Args:
            name: of the model.
            faults: a list that takes the faults of bad versions.
            is_start: whether it loads versions unproved, as the server does at its start.

        Returns:
            What must be done, or None for nothing.
        """
        self.wanted.pop(name, None)
        versions = self._seen.get(name)
        if versions is None:
            self._judged.pop(name, None)
            self.bundles.keep_refusals(name, ())
            self._metrics.forget_model(name)
            was_served = self._served.pop(name, None) is not None or name in self._pinned
            self._pinned.discard(name)
            return Change(name, None) if was_served else None
        faults = faults if faults is not None else []
        self._metrics.catalogue.add_model(name)
        self._judged[name] = versions
        if name in self._pinned:
            return None
        self.bundles.keep_refusals(name, versions)
        change = None
        for bundle in versions[:_MOST_TRIED]:
            if bundle == self._served.get(name):
                break
            is_good = is_start or self.bundles.is_good(bundle, faults)
            if isinstance(is_good, Task):
                self.wanted[name] = is_good
                self._judged[name] = []  # so that it counts as changed, also if it goes
                return None
            if is_good and (model := self._load(bundle, faults)) is not None:
                self._served[name] = bundle
                change = Change(name, model)
                break
            if self.bundles.pause_of(bundle) < math.inf:
                self._judged[name] = []
        self._metrics.catalogue.tell_whole(name, is_whole=change is not None or not self.bundles.has_refused(name))
        return change

    def _load(self, bundle: FoundBundle, faults: list[str]) -> Model | None:
        return self.bundles.load(bundle, sum(map(bool, self._seen.values())), faults)

    def _read(self, name: str, faults: list[str]) -> ServedModel | None:
        """Returns what is known of the highest version with a good manifest, if there is one."""
        self._metrics.catalogue.add_model(name)
        self._judged[name] = self._seen[name]
        for bundle in self._seen[name]:
            model = self.bundles.read(bundle, faults)
            if model is not None:
                self._served[name] = bundle
                return model
            if self.bundles.pause_of(bundle) < math.inf:
                self._judged[name] = []
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

    def _check(self, names: Sequence[str], faults: list[str]) -> None:
        if not names:
            raise BundleError(faults or [nothing_in(self._directory)])
        missing = [name for name in self._settings.preferred_models if name not in names]
        if missing:
            raise SettingsError([f"--default: {name} is not served; {', '.join(names)} are" for name in missing])
