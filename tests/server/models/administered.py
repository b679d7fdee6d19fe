"""A folder of models that is served, watched and administered."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from server.models.administration import Administration, ModelStatus, VersionState
from server.models.catalogue import Catalogue
from server.models.folder import FoundBundle
from server.models.folder_loader import FolderLoader
from server.models.folder_watch import watch_folder
from server.models.model_memory import ModelMemory
from server.models.proofs import Finding, Proofs, Task
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.server.models.catalogued import borrowed

SECONDS = 100.0


class Add:
    """Puts copies of a bundle into a folder, each by one rename."""

    def __init__(self, models: Path, bundle: Path) -> None:
        self.models, self._bundle = models, bundle

    def __call__(self, path: str) -> Path:
        directory = self.models / path
        staged = shutil.copytree(self._bundle, self.models.with_name("staged"))
        directory.parent.mkdir(parents=True, exist_ok=True)
        return staged.rename(directory)


class Memory:
    """Says how much was reserved last, and whether more may be."""

    def __init__(self) -> None:
        self.reserved: list[int] = []
        self.most: float = float("inf")

    def reserve(self, num_bytes: int) -> bool:
        if num_bytes > self.most:
            return False
        self.reserved.append(num_bytes)
        return True


class NothingToProve(Proofs):
    """Finds no fault in any bundle, without a process of its own."""

    def found(self, bundle: FoundBundle) -> Finding:
        return Finding([])

    async def wait_for(self, task: Task) -> None:
        pass


class Served:
    """A folder that is served and watched: `m` in version 2, and `n`."""

    def __init__(self, models: Path, metrics: Metrics) -> None:
        settings = Settings(models=models, variant="cpu-fp32", lanes=1)
        self.loader = FolderLoader(models, settings, metrics, NothingToProve())
        self.catalogue = Catalogue(metrics.catalogue)
        self.memory = Memory()
        self.model_memory = ModelMemory(self.catalogue, settings, self.memory.reserve)
        self.administration = Administration(self.catalogue, self.loader, self.model_memory)
        self.models = models
        self.metrics = metrics

    async def start(self) -> None:
        for model in await asyncio.to_thread(self.loader.load_all):
            self.catalogue.put(model)
        self.model_memory.follow()
        self._watching = asyncio.create_task(watch_folder(self.loader, self.catalogue, poll_seconds=0.01))

    async def stop(self) -> None:
        self._watching.cancel()
        await asyncio.to_thread(self.catalogue.stop)

    async def status(self, name: str = "m") -> dict[str, tuple[VersionState, int]]:
        (status,) = [each for each in await self.administration.statuses() if each.name == name]
        return facts(status)

    async def answering(self) -> set[str]:
        """Versions that answer requests for `m`."""
        versions = set()
        for number in range(100):
            async with borrowed(self.catalogue, "m", f"key {number}") as model:
                versions.add(model.manifest.version)
        return versions

    def all_go_to(self, version: str) -> bool:
        """Whether all requests for `m` go to a version."""
        split = self.catalogue.loaded("m")[1]
        return split is not None and split.percent(version) == 100

    async def until_loaded(self, num_models: int) -> None:
        """Waits until so many versions are in memory, retired ones included."""
        await until(lambda: sum(self._count(state) for state in ("loaded", "retired")) == num_models)

    def _count(self, state: str) -> float:
        return self.metrics.registry.get_sample_value("babelserve_models", {"state": state}) or 0


async def until(is_over: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_over():  # noqa: ASYNC110 # what is waited for is polled for, too
            await asyncio.sleep(0.01)


def facts(status: ModelStatus) -> dict[str, tuple[VersionState, int]]:
    return {each.version: (each.state, each.percent) for each in status.versions}
