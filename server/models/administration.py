"""Changes that an operator makes to the models of a folder while they are served, by any protocol.

A model follows its folder (`server.models.folder_loader`) until an operator changes its versions. From then on new
versions are left alone, until the operator makes the model follow its folder again. Changes by operators and changes of
the folder are made one at a time, so nothing changes between a look at the folder and what is done because of it.
"""

import asyncio
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from server.allocator import collect_garbage
from server.bundle.manifest_file import read_manifest
from server.errors import InvalidRequest, ModelNotFound, NotServing, PreconditionFailed, StartupError
from server.models.catalogue import Catalogue
from server.models.folder import FoundBundle, is_model_name, version_key
from server.models.folder_loader import FolderLoader
from server.models.loading import needed_bytes
from server.models.model_memory import ModelMemory
from server.models.traffic_split import PERCENT, TrafficSplit

_T = TypeVar("_T")


class VersionState(enum.Enum):
    """Whether a version is only in the folder, or in memory. A version in memory may have left the folder."""

    AVAILABLE = "available"
    LOADED = "loaded"


@dataclass(frozen=True, slots=True)
class VersionStatus:
    """A version of a model, its percent of the requests, and why it could not be loaded at the last try."""

    version: str
    state: VersionState
    percent: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A model, whether it follows its folder, and its versions, the highest first."""

    name: str
    follows_folder: bool
    versions: tuple[VersionStatus, ...]


class Administration:
    """Changes models, on the event loop's thread.

    Each change returns the model's status after it. A change that raises an error has changed nothing. All changes
    raise NotServing while the server is loading.

    Args:
        catalogue: has the served models.
        loader: loads what is in the folder.
        memory: leaves memory to versions beside others.
    """

    def __init__(self, catalogue: Catalogue, loader: FolderLoader, memory: ModelMemory) -> None:
        self._catalogue = catalogue
        self._loader = loader
        self._memory = memory

    async def statuses(self) -> list[ModelStatus]:
        """Returns the status of all models, by name."""
        found = await self._found()
        names = found.keys() | {*self._catalogue.names}
        return [self._status(name, found.get(name, ())) for name in sorted(names)]

    async def load(self, name: str, version: str = "") -> ModelStatus:
        """Loads a version beside the served ones. If no version is named, it makes the model follow its folder again.

        Raises:
            ModelNotFound: the folder has no such model, or version.
            PreconditionFailed: the version is faulty, there is no memory for it, or it is loaded and its folder has
                changed.
        """
        if version not in self._loaded(name):
            await self._loader.prove(name, version or None)
        async with self._loader.turn:
            found = await self._found_of(name)
            if not version:
                self._catalogue.put(await self._done(self._loader.load_highest, name))
            else:
                if version in self._loaded(name):
                    await self._check_same(name, version, found)
                else:
                    await self._add(name, version, found)
                self._loader.pin(name)
            return self._status(name, found)

    async def unload(self, name: str, version: str = "") -> ModelStatus:
        """Unloads a version that gets no requests, or the model if no version is named.

        Requests that have begun on it are answered.

        Raises:
            ModelNotFound: it is not loaded.
            PreconditionFailed: the version gets requests, or no other model is served.
        """
        async with self._loader.turn:
            found = (await self._found()).get(name, [])
            models, split = self._catalogue.loaded(name)
            if split is None or version not in ("", *(each.manifest.version for each in models)):
                field, value = ("version", version) if split else ("model", name)
                raise ModelNotFound(f"{field}: {_shown(value)} is not loaded; {self._those_loaded(name)}")
            if not version and len(self._catalogue.names) == 1:
                raise PreconditionFailed(f"model: {name} is the only one that is served")
            if split.percent(version):
                message = f"has {split.percent(version)} percent of the requests; SetTraffic gives them to others"
                raise PreconditionFailed(f"version: {version} of {name} {message}")
            if version:
                self._catalogue.drop(name, version)
            else:
                self._catalogue.remove(name)
            self._loader.pin(name)
            return self._status(name, found)

    async def rollback(self, name: str, version: str = "") -> ModelStatus:
        """Gives all requests to a version, to the one before if none is named, and unloads the other versions.

        Raises:
            ModelNotFound: there is no such model, or the version is neither loaded nor in the folder.
            PreconditionFailed: the version is faulty, or no version came before.
        """
        version = version or self._version_before(name, (await self._found()).get(name, []))
        if version not in self._loaded(name):
            await self._loader.prove(name, version)
        async with self._loader.turn:
            found = (await self._found()).get(name, [])
            is_known = version in self._catalogue.history.of(name)
            if version in self._loaded(name):
                self._split(name, {version: PERCENT})
                for other in self._loaded(name) - {version}:
                    self._catalogue.drop(name, other)
            else:
                self._catalogue.put(await self._done(self._loader.load_version, _bundle(name, version, found)))
            if not is_known:  # the next rollback must not return to the version that this one has left
                self._catalogue.history.keep_last(name)
            self._loader.pin(name)
            return self._status(name, found)

    async def set_traffic(self, name: str, percents: Mapping[str, int]) -> ModelStatus:
        """Sets what percent of a model's requests each version gets. A version that is not named gets none.

        Raises:
            InvalidRequest: the percents do not add up to 100.
            ModelNotFound: the model is not loaded.
            PreconditionFailed: a version is not loaded, or does not translate the languages that the others do.
        """
        if sum(percents.values()) != PERCENT or min(percents.values()) < 0:
            message = f"must be percents from 0 to {PERCENT} that add up to {PERCENT}, not {sum(percents.values())}"
            raise InvalidRequest("traffic", message)
        async with self._loader.turn:
            loaded = self._loaded(name)
            if not loaded:
                raise ModelNotFound(f"model: {_shown(name)} is not loaded; {self._those_loaded(name)}")
            missing = [_shown(version) for version in percents if version not in loaded]
            if missing:
                message = f"{', '.join(missing)} is not loaded; {self._those_loaded(name)}"
                raise PreconditionFailed(f"traffic: {message}")
            self._check_alike(name, [version for version, percent in percents.items() if percent])
            found = (await self._found()).get(name, [])
            self._split(name, percents)
            self._loader.pin(name)
            return self._status(name, found)

    async def _found(self) -> dict[str, list[FoundBundle]]:
        if not self._catalogue.is_open:
            raise NotServing("the server is loading its models")
        return await self._done(self._loader.found)

    async def _found_of(self, name: str) -> list[FoundBundle]:
        found = await self._found()
        if name not in found:
            raise ModelNotFound(f"model: {_shown(name)} is not in the folder; {', '.join(sorted(found))} are")
        return found[name]

    async def _done(self, work: Callable[..., _T], *arguments: object) -> _T:
        """Makes the loader do something. Raises PreconditionFailed with the faults that it finds."""
        try:
            return await self._loader.in_background(work, *arguments)
        except StartupError as error:
            raise PreconditionFailed("; ".join(error.faults)) from error

    async def _add(self, name: str, version: str, found: Sequence[FoundBundle]) -> None:
        """Loads a version, beside the served ones if there are any."""
        model = await self._done(self._loader.load_version, _bundle(name, version, found))
        if not self._loaded(name):
            self._catalogue.put(model)
        elif self._memory.fits(model):
            self._catalogue.add(model)
        else:
            await asyncio.to_thread(model.stop)
            mib = (needed_bytes(model.manifest, model.variant) + model.growth_bytes) >> 20
            del model
            await asyncio.to_thread(collect_garbage)
            raise PreconditionFailed(f"version: {version} of {name} may take {mib} MiB of memory, which requests need")

    async def _check_same(self, name: str, version: str, found: Sequence[FoundBundle]) -> None:
        """Raises PreconditionFailed if the folder has another bundle now than the loaded version."""
        (loaded,) = (each.manifest for each in self._catalogue.loaded(name)[0] if each.manifest.version == version)
        for each in found:
            if each.version == version:
                manifest = await self._done(read_manifest, each.directory)
                if replace(manifest, name=name, version=version) != loaded:
                    message = "is loaded with what its folder held before; give what that holds a version of its own"
                    raise PreconditionFailed(f"version: {version} of {name} {message}")

    def _loaded(self, name: str) -> set[str]:
        return {each.manifest.version for each in self._catalogue.loaded(name)[0]}

    def _check_alike(self, name: str, versions: Sequence[str]) -> None:
        """Raises PreconditionFailed if versions translate different languages.

        Requests are checked by one of the versions, so all must translate the same.
        """
        manifests = {each.manifest.version: each.manifest for each in self._catalogue.loaded(name)[0]}
        first, *others = (manifests[version] for version in versions)
        for each in others:
            if (each.language_pairs, each.languages) != (first.language_pairs, first.languages):
                message = f"{each.version} translates other languages than {first.version}: give one all requests"
                raise PreconditionFailed(f"traffic: {message}")

    def _those_loaded(self, name: str) -> str:
        """Returns words for an error: the loaded versions of a model; of an unloaded model, the loaded models."""
        loaded = sorted(self._loaded(name), key=version_key) or self._catalogue.names
        return f"loaded are {', '.join(loaded)}" if loaded else "none is"

    def _split(self, name: str, percents: Mapping[str, int]) -> None:
        self._catalogue.split(name, TrafficSplit.of(percents))

    def _version_before(self, name: str, found: Sequence[FoundBundle]) -> str:
        """Returns the version that had all requests before they were shared, or before the present one had all."""
        _, split = self._catalogue.loaded(name)
        if split is None:
            raise ModelNotFound(f"model: {_shown(name)} is not loaded; {self._those_loaded(name)}")
        history = self._catalogue.history.of(name)
        before = history if len(split.shares) > 1 else history[:-1]
        named = [each.version for each in found if each.version]
        lower = [version for version in named if version_key(version) < version_key(split.main)]
        if not before and not lower:
            message = f"has had no version before {split.main}, and its folder has no lower one"
            raise PreconditionFailed(f"model: {name} {message}")
        return before[-1] if before else lower[0]

    def _status(self, name: str, found: Sequence[FoundBundle]) -> ModelStatus:
        models, split = self._catalogue.loaded(name)
        faults_of = self._loader.bundles.faults_of
        versions = {
            each.version: VersionStatus(each.version, VersionState.AVAILABLE, fault="; ".join(faults_of(each)))
            for each in found
            if each.version or not models  # a bundle that is not in a version's folder is the loaded one
        }
        for model in models:
            version = model.manifest.version
            percent = split.percent(version) if split is not None else 0
            versions[version] = VersionStatus(version, VersionState.LOADED, percent)
        ordered = sorted(versions, key=version_key, reverse=True)
        return ModelStatus(name, self._loader.follows(name), tuple(versions[version] for version in ordered))


def _bundle(name: str, version: str, found: Sequence[FoundBundle]) -> FoundBundle:
    for each in found:
        if each.version == version:
            return each
    known = ", ".join(each.version for each in found if each.version) or "none"
    raise ModelNotFound(f"version: {_shown(version)} of {_shown(name)} is not in the folder; there: {known}")


def _shown(name: str) -> str:
    """Returns a name as it is if a model may have it, else only its length."""
    return name if is_model_name(name) else f"a value of {len(name)} characters"
