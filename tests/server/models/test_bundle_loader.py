"""One bundle of the folder of models: proved, refused once, and remembered until it changes."""

import os
import shutil
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from server.children import Bounds
from server.models.bundle_loader import BundleLoader
from server.models.folder import FoundBundle, find_models
from server.models.proofs import Proofs
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics


@pytest.fixture
def models(tmp_path: Path, tiny_bundle: Bundle) -> Path:
    shutil.copytree(tiny_bundle.directory, tmp_path / "models" / "m")
    return tmp_path / "models"


def found(models: Path) -> FoundBundle:
    return find_models(models)[0]["m"][0]


def loader_of(models: Path, metrics: Metrics, *faults: str) -> BundleLoader:
    """A loader whose proofs find these faults."""

    async def prove(directory: Path, variant: str, bounds: Bounds) -> list[str]:
        return [*faults]

    return BundleLoader(Settings(models=models, variant="cpu-fp32", lanes=1), metrics, Proofs(prove))


async def proved(loader: BundleLoader) -> None:
    await loader.proofs.wait_for(loader.wanted["m"])


async def test_a_bundle_is_loaded_when_it_is_proved(models: Path, metrics: Metrics) -> None:
    loader, bundle, faults = loader_of(models, metrics), found(models), list[str]()

    assert loader.is_good(bundle, faults) is None
    assert loader.wanted["m"].variant == "cpu-fp32"
    await proved(loader)
    assert loader.is_good(bundle, faults) is True
    model = loader.load(bundle, 1, faults)
    assert model is not None
    model.stop()

    assert faults == []
    assert loader.directory is None


async def test_what_was_wanted_stays_whole_for_who_reads_it(models: Path, metrics: Metrics) -> None:
    loader = loader_of(models, metrics)
    before = loader.wanted
    assert loader.is_good(found(models), []) is None
    wanted = loader.wanted
    loader.want_not("another")
    assert loader.wanted == wanted
    loader.want_not("m")

    assert (before, [*wanted], loader.wanted) == ({}, ["m"], {})


async def test_what_is_refused_is_counted_once_and_tried_again_when_it_changes(models: Path, metrics: Metrics) -> None:
    loader, bundle = loader_of(models, metrics, "is bad" * 1000), found(models)
    assert loader.is_good(bundle, []) is None
    await proved(loader)

    for _ in range(3):
        faults: list[str] = []
        assert loader.is_good(bundle, faults) is False
        assert faults == [("is bad" * 1000)[:1000]]
    labels = {"model": "m", "outcome": "refused"}
    assert metrics.registry.get_sample_value("babelserve_model_loads_total", labels) == 1
    assert loader.has_refused("m")
    os.utime(bundle.directory / "manifest.json", (1, 1))
    assert loader.is_good(found(models), []) is None
    assert loader.to_prove_again(bundle) is not None
    assert loader.faults_of(bundle) == []


def test_a_bad_manifest_is_refused_without_a_proof(models: Path, metrics: Metrics) -> None:
    (models / "m" / "manifest.json").write_text("{")
    loader = loader_of(models, metrics)
    bundle = found(models)

    assert loader.is_good(bundle, []) is False
    assert loader.read(bundle, []) is None
    assert loader.wanted == {}
    assert "manifest.json" in loader.faults_of(bundle)[0]
    loader.keep_refusals("m", ())
    assert not loader.has_refused("m")


def test_what_a_manifest_says_is_read_without_a_proof(models: Path, metrics: Metrics) -> None:
    loader = loader_of(models, metrics)

    served = loader.read(found(models), [])

    assert loader.wanted == {}
    assert served is not None
    assert served.manifest.name == "m"
