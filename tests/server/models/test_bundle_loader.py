"""One bundle of the folder of models: proved, refused once, and remembered until it changes."""

import errno
import math
import os
import shutil
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from server.children import Bounds
from server.errors import BundleError
from server.models import bundle_loader
from server.models.bundle_loader import BundleLoader
from server.models.folder import FoundBundle, find_models
from server.models.proof import Unproved
from server.models.proofs import Proofs, Task
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.fakes import FakeClock


@pytest.fixture
def models(tmp_path: Path, tiny_bundle: Bundle) -> Path:
    shutil.copytree(tiny_bundle.directory, tmp_path / "models" / "m")
    return tmp_path / "models"


def found(models: Path) -> FoundBundle:
    return find_models(models)[0]["m"][0]


def loader_of(models: Path, metrics: Metrics, *faults: str, error: Exception | None = None) -> BundleLoader:
    """A loader whose proofs find these faults, or raise an error."""

    async def prove(directory: Path, variant: str, bounds: Bounds) -> list[str]:
        if error is not None:
            raise error
        return [*faults]

    settings = Settings(models=models, variant="cpu-fp32", lanes=1)
    return BundleLoader(settings, metrics, Proofs(prove), FakeClock())


def after(loader: BundleLoader, seconds: float) -> None:
    assert isinstance(loader._clock, FakeClock)
    loader._clock.now += seconds


async def proved(loader: BundleLoader, bundle: FoundBundle) -> None:
    task = loader.is_good(bundle, [])
    assert isinstance(task, Task)
    await loader.proofs.wait_for(task)


async def test_a_bundle_is_loaded_when_it_is_proved(models: Path, metrics: Metrics) -> None:
    loader, bundle, faults = loader_of(models, metrics), found(models), list[str]()

    task = loader.is_good(bundle, faults)
    assert isinstance(task, Task)
    assert (task.bundle, task.variant) == (bundle, "cpu-fp32")
    await loader.proofs.wait_for(task)
    assert loader.is_good(bundle, faults) is True
    model = loader.load(bundle, 1, faults)
    assert model is not None
    model.stop()

    assert faults == []
    assert loader.directory is None


async def test_what_is_refused_is_counted_once_and_tried_again_when_it_changes(models: Path, metrics: Metrics) -> None:
    loader, bundle = loader_of(models, metrics, "is bad" * 1000), found(models)
    await proved(loader, bundle)

    for seconds in (0.0, 4.9, 1e6):
        after(loader, seconds)
        faults: list[str] = []
        assert loader.is_good(bundle, faults) is False
        assert faults == [("is bad" * 1000)[:1000]]
    labels = {"model": "m", "outcome": "refused"}
    assert metrics.registry.get_sample_value("babelserve_model_loads_total", labels) == 1
    assert loader.has_refused("m")
    assert loader.pause_of(bundle) == math.inf
    os.utime(bundle.directory / "manifest.json", (1, 1))
    assert isinstance(loader.is_good(found(models), []), Task)
    loader.forget(bundle)
    assert isinstance(loader.is_good(bundle, []), Task)
    assert loader.faults_of(bundle) == []


async def test_what_a_proof_has_not_come_to_the_end_of_is_proved_again_ever_later(
    models: Path, metrics: Metrics
) -> None:
    loader, bundle = loader_of(models, metrics, error=Unproved(["was ended by SIGKILL"])), found(models)

    for count, pause in enumerate((5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0)):
        await proved(loader, bundle)
        for seconds in (0.0, pause - 0.1):
            after(loader, seconds)
            faults: list[str] = []
            assert loader.is_good(bundle, faults) is False
            assert faults == ["was ended by SIGKILL"]
        assert (loader.pause_of(bundle), loader.may_come(bundle)) == (pause, count == 0)
        after(loader, 0.2)


def test_a_load_that_fails_is_tried_again_after_a_pause_though_nothing_proves_it(
    models: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, bundle = loader_of(models, metrics), found(models)
    monkeypatch.setattr(loader, "_needs_proof", lambda _: False)

    def fail(*_: object, **__: object) -> None:
        raise BundleError(["too little memory"])

    monkeypatch.setattr(bundle_loader, "load_model", fail)
    for pause in (5.0, 10.0):
        assert loader.is_good(bundle, []) is True
        assert loader.load(bundle, 1, []) is None
        after(loader, pause - 0.1)
        assert loader.is_good(bundle, []) is False
        after(loader, 0.2)


def test_a_bad_manifest_is_refused_without_a_proof(models: Path, metrics: Metrics) -> None:
    (models / "m" / "manifest.json").write_text("{")
    loader = loader_of(models, metrics)
    bundle = found(models)

    assert loader.is_good(bundle, []) is False
    assert loader.read(bundle, []) is None
    assert "manifest.json" in loader.faults_of(bundle)[0]
    loader.keep_refusals("m", ())
    assert not loader.has_refused("m")


def test_a_manifest_that_cannot_be_read_for_now_is_tried_again_after_a_pause(
    models: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, bundle = loader_of(models, metrics), found(models)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("server.bundle.files.os.open", fail)
        assert loader.read(bundle, []) is None
        assert loader.pause_of(bundle) == 5.0
        after(loader, 5.1)
        assert loader.is_good(bundle, []) is False
        assert loader.pause_of(bundle) == 10.0
    after(loader, 9.9)
    assert loader.is_good(bundle, []) is False
    after(loader, 0.2)
    assert isinstance(loader.is_good(bundle, []), Task)


def test_what_a_manifest_says_is_read_without_a_proof(models: Path, metrics: Metrics) -> None:
    loader = loader_of(models, metrics)

    served = loader.read(found(models), [])

    assert served is not None
    assert served.manifest.name == "m"
