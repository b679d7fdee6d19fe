"""A server that starts on bundles that do not end, or take all memory: in processes, as nothing else ends these."""

import asyncio
import functools
import re
import shutil
import threading
import time
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from server.bundle.bundle import Bundle
from server.errors import StartupError
from server.models import bundle_loader, first_models
from server.models.catalogue import Catalogue
from server.models.folder_loader import Change, FolderLoader
from server.models.folder_watch import watch_folder
from server.models.proof import Unproved
from server.models.proofs import Proofs
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.acceptance.server_process import launch_server
from tests.chaos.hostile_bundles import BUNDLES
from tests.chaos.observations import resources
from tests.server.models.administered import SECONDS, until

FLAGS = ["--variant", "cpu-fp32", "--lanes", "1"]


@pytest.fixture
def models(tmp_path: Path, tiny_bundle: Bundle) -> Path:
    shutil.copytree(tiny_bundle.directory, tmp_path / "models" / "a-good")
    return tmp_path / "models"


def spoilt(tiny_bundle: Bundle, directory: Path, kind: str) -> Path:
    shutil.copytree(tiny_bundle.directory, directory)
    BUNDLES[kind](directory)
    return directory


def test_a_signal_ends_a_server_whose_bundle_does_not(tmp_path: Path, tiny_bundle: Bundle) -> None:
    bundle = spoilt(tiny_bundle, tmp_path / "endless", "products")
    server = launch_server(tmp_path / "stderr.log", [*FLAGS, "--bundle", str(bundle)])
    with grpc.insecure_channel(server.health_address) as channel:
        answer = HealthStub(channel).Check(HealthCheckRequest(service="liveness"), wait_for_ready=True)
    before = resources(server.process.pid).cpu_seconds
    while resources(server.process.pid).cpu_seconds < before + 2.0:  # a good bundle is loaded by then
        time.sleep(0.05)

    assert answer.status == HealthCheckResponse.SERVING
    assert server.stop() == 0


def test_a_server_begins_anew_if_a_bundle_of_a_folder_takes_all_memory(models: Path, tiny_bundle: Bundle) -> None:
    spoilt(tiny_bundle, models / "b-bad", "constant-of-shape")
    server = launch_server(models.parent / "stderr.log", [*FLAGS, "--models", str(models)])
    try:
        while "SERVING" not in (written := server.stderr()) and server.process.poll() is None:
            time.sleep(0.1)
    finally:
        code = server.stop()

    assert code == 0
    assert "takes more than" in written
    assert "begins anew" in written
    assert "SERVING a-good" in written


async def test_a_model_that_is_being_loaded_when_the_first_one_is_served_is_served_too(
    models: Path, tiny_bundle: Bundle, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_bundle.directory, models / "b-good")
    settings = Settings(models=models, variant="cpu-fp32", lanes=1)

    async def prove(*_: object) -> list[str]:
        return []

    loader, catalogue = FolderLoader(models, settings, metrics, proofs=Proofs(prove)), Catalogue(metrics.catalogue)
    may_load, load = threading.Event(), loader.load

    def load_slowly(name: str) -> Change | None:
        if catalogue.is_open:
            may_load.wait()
        return load(name)

    monkeypatch.setattr(loader, "load", load_slowly)
    monkeypatch.setattr(first_models, "watch_folder", functools.partial(watch_folder, poll_seconds=0.01))
    monkeypatch.setenv(first_models._PROVES_FIRST, "1")
    updating = await first_models.load_first_models(settings, metrics, loader, catalogue, asyncio.Event())
    try:
        assert len(catalogue.names) == 1
        may_load.set()
        await until(lambda: catalogue.names == ["a-good", "b-good"])
    finally:
        may_load.set()
        assert updating is not None
        updating.cancel()
        await asyncio.to_thread(catalogue.stop)


async def test_a_server_that_has_begun_anew_waits_for_a_default_whose_proof_is_killed(
    models: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_loader, "_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(first_models, "watch_folder", functools.partial(watch_folder, poll_seconds=0.01))
    monkeypatch.setenv(first_models._PROVES_FIRST, "1")
    settings = Settings(models=models, variant="cpu-fp32", lanes=1, default="a-good")
    killed = [Unproved(["it was ended by SIGKILL"])]

    async def prove(*_: object) -> list[str]:
        for error in killed:
            killed.clear()
            raise error
        return []

    loader, catalogue = FolderLoader(models, settings, metrics, proofs=Proofs(prove)), Catalogue(metrics.catalogue)
    stop = asyncio.Event()
    updating = await first_models.load_first_models(settings, metrics, loader, catalogue, stop)
    try:
        await first_models.wait_for_defaults(settings, loader, catalogue, stop)
        assert catalogue.names == ["a-good"]
    finally:
        assert updating is not None
        updating.cancel()
        await asyncio.to_thread(catalogue.stop)


@pytest.mark.parametrize(
    ("bad", "default", "message"),
    [("ab", "", "a-good: is bad\n.*b-good: is bad"), ("b", "b-good", "--default: b-good is not served; a-good are")],
)
async def test_a_server_that_has_begun_anew_ends_if_nothing_can_be_served_or_not_the_default(
    models: Path,
    tiny_bundle: Bundle,
    metrics: Metrics,
    monkeypatch: pytest.MonkeyPatch,
    bad: str,
    default: str,
    message: str,
) -> None:
    shutil.copytree(tiny_bundle.directory, models / "b-good")
    settings = Settings(models=models, variant="cpu-fp32", lanes=1, default=default)

    async def prove(directory: Path, *_: object) -> list[str]:
        return [f"{directory}: is bad"] if directory.name[0] in bad else []

    loader, catalogue = FolderLoader(models, settings, metrics, proofs=Proofs(prove)), Catalogue(metrics.catalogue)
    monkeypatch.setattr(first_models, "watch_folder", functools.partial(watch_folder, poll_seconds=0.01))
    monkeypatch.setenv(first_models._PROVES_FIRST, "1")
    stop = asyncio.Event()

    async def start() -> None:
        await first_models.load_first_models(settings, metrics, loader, catalogue, stop)
        await first_models.wait_for_defaults(settings, loader, catalogue, stop)

    try:
        with pytest.raises(StartupError) as caught:
            await asyncio.wait_for(start(), SECONDS)
    finally:
        await asyncio.to_thread(catalogue.stop)

    assert re.search(message, "\n".join(caught.value.faults))
