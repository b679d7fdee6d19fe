"""Models of a folder that are loaded on demand: what has failed is tried again if that may help."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from server.errors import NotServing
from server.models import bundle_loader
from server.models.bundle_loader import BundleLoader
from server.models.folder_loader import FolderLoader
from server.models.on_demand import OnDemand
from server.models.proof import Unproved
from server.models.proofs import Proofs
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.fakes import FakeClock


class OneModel:
    """A folder with one model, whose proofs end as they are told."""

    def __init__(self, models: Path, metrics: Metrics) -> None:
        settings = Settings(models=models, variant="cpu-fp32", lanes=1)
        self.clock = FakeClock()
        self.num_proofs = 0
        self.proof: Callable[[], list[str]] = list
        proofs = Proofs(self._prove)
        self.loader = FolderLoader(models, settings, metrics, proofs)
        self.loader.bundles = BundleLoader(settings, metrics, proofs, self.clock)
        self.loader.read_all()
        self._on_demand = OnDemand(self.loader)

    async def is_loaded(self, after_seconds: float = 0.0) -> bool:
        """Whether the model is loaded for a request that comes after so many seconds."""
        self.clock.now += after_seconds
        try:
            await self._on_demand.prove("m")
            model = await self._on_demand.load("m")
        except NotServing:
            return False
        await asyncio.to_thread(model.stop)
        return True

    async def _prove(self, *_: object) -> list[str]:
        self.num_proofs += 1
        return self.proof()


@pytest.fixture
def one(tmp_path: Path, tiny_bundle: Bundle, metrics: Metrics) -> OneModel:
    shutil.copytree(tiny_bundle.directory, tmp_path / "models" / "m")
    return OneModel(tmp_path / "models", metrics)


def killed() -> list[str]:
    raise Unproved(["it was ended by SIGKILL"])


async def test_a_model_whose_proof_was_killed_is_proved_again_after_a_while(one: OneModel) -> None:
    one.proof = killed
    assert not await one.is_loaded()
    one.proof = list
    assert [await one.is_loaded(4.9), one.num_proofs] == [False, 1]

    assert await one.is_loaded(0.2)
    assert await one.is_loaded()
    assert one.num_proofs == 2


async def test_a_model_that_is_at_fault_is_proved_and_refused_once(one: OneModel, metrics: Metrics) -> None:
    one.proof = lambda: ["is bad"]

    for seconds in (0.0, 4.9, 0.2, 100.0):
        assert not await one.is_loaded(seconds)

    assert one.num_proofs == 1
    labels = {"model": "m", "outcome": "refused"}
    assert metrics.registry.get_sample_value("babelserve_model_loads_total", labels) == 1


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), MemoryError()])
async def test_a_good_model_whose_load_fails_is_loaded_after_a_while(
    one: OneModel, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(bundle_loader, "load_model", fail)
        assert not await one.is_loaded()
    assert not await one.is_loaded(4.9)

    assert await one.is_loaded(0.2)
