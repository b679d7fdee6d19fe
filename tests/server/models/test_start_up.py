import shutil
import uuid
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from server.models.loading import start_model
from server.models.start_up import describe, growth_of, new_catalogue, open_models, serve_models, stop_models
from server.runtime.cuda_device import CudaDevice
from server.runtime.runner import open_runner
from server.settings.settings import ON_DEMAND, Settings
from server.telemetry.metrics import Metrics
from tests.server.models.catalogued import borrowed


@pytest.fixture
def models(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    for name in ("a", "b"):
        shutil.copytree(tiny_bundle.directory, tmp_path / "models" / name)
    return tmp_path / "models"


async def test_one_bundle_is_a_catalogue_of_one(tiny_bundle: Bundle, metrics: Metrics) -> None:
    settings = Settings(bundle=tiny_bundle.directory, variant="cpu-fp32", lanes=1)
    catalogue, loader = new_catalogue(settings, metrics)

    opened = open_models(settings, metrics, loader)
    (growth,) = {growth_of(opened, settings), opened[0].growth_bytes}  # type: ignore[attr-defined]
    serve_models(catalogue, opened)
    async with borrowed(catalogue, "tiny") as model:
        model.stop()

    assert loader is None
    assert growth > 0
    assert opened == []
    assert describe(catalogue.models) == "tiny 0 (cpu-fp32, lanes: 1)"


def test_a_model_on_a_gpu_names_it(tiny_bundle: Bundle, metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = CudaDevice(name="A GPU", uuid=uuid.UUID(int=0), capability=(9, 0), cuda=(13, 0), total_bytes=1 << 30)
    monkeypatch.setattr("server.models.start_up.find_cuda_device", lambda: gpu)
    runner = open_runner(tiny_bundle, "cuda-fp16", "cpu")
    model = start_model(tiny_bundle, "cuda-fp16", runner, Settings(), metrics)
    model.engine.stop()

    expected = "A GPU (compute capability 9.0, driver unknown for CUDA 13.0, 1024 MiB)"
    assert describe((model,)) == f"tiny 0 (cuda-fp16, lanes: 1) on {expected}"


async def test_models_of_a_folder_are_loaded_at_the_start(models: Path, metrics: Metrics) -> None:
    settings = Settings(models=models, variant="cpu-fp32", lanes=1, default="b")
    catalogue, loader = new_catalogue(settings, metrics)

    opened = open_models(settings, metrics, loader)
    serve_models(catalogue, opened)
    described = describe(catalogue.models)
    stop_models(list(catalogue.models))

    assert described == "b 0 (cpu-fp32, lanes: 1), a 0 (cpu-fp32, lanes: 1)"


async def test_or_when_they_are_asked_for(models: Path, metrics: Metrics) -> None:
    settings = Settings(models=models, variant="cpu-fp32", lanes=1, load=ON_DEMAND, models_memory=8)
    catalogue, loader = new_catalogue(settings, metrics)

    opened = open_models(settings, metrics, loader)
    growth = growth_of(opened, settings)
    serve_models(catalogue, opened)
    described = describe(catalogue.models)
    for name in ("a", "b"):
        async with borrowed(catalogue, name) as model:
            assert model.manifest.name == name
    left = describe(catalogue.models)
    catalogue.stop()

    assert growth > 8 << 20
    assert described == "a 0 (cpu-fp32, on demand), b 0 (cpu-fp32, on demand)"
    assert left == "a 0 (cpu-fp32, on demand), b 0 (cpu-fp32, lanes: 1)"
