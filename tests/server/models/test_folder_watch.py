import asyncio
import gc
import logging
import shutil
import weakref
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from server.bundle.bundle import Bundle
from server.decoding.options import DecodingOptions
from server.models import bundle_loader
from server.models.catalogue import Catalogue
from server.models.folder_loader import FolderLoader
from server.models.folder_watch import watch_folder
from server.models.proof import Unproved
from server.models.proofs import Proofs
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.chaos.hostile_bundles import BUNDLES
from tests.server.models.administered import Add, NothingToProve, until
from tests.server.models.catalogued import borrowed


def loader_of(models: Path, metrics: Metrics) -> FolderLoader:
    return FolderLoader(models, Settings(models=models, variant="cpu-fp32", lanes=1), metrics, NothingToProve())


async def test_what_changes_is_served_while_the_server_runs(
    tmp_path: Path, metrics: Metrics, tiny_bundle: Bundle
) -> None:
    models = tmp_path / "models"
    add = Add(models, tiny_bundle.directory)
    add("m/1")
    add("n")
    loader, catalogue = loader_of(models, metrics), Catalogue(metrics.catalogue)
    for model in loader.load_all():
        catalogue.put(model)
    del model
    watching = asyncio.create_task(watch_folder(loader, catalogue, poll_seconds=0.01))
    try:
        async with borrowed(catalogue, "m") as old:
            runner = weakref.ref(old.engine)
            add("m/2")
            await until(lambda: catalogue.models[0].manifest.version == "2")
            (future,) = old.engine.submit([old.manifest.golden.source_ids], DecodingOptions(beam_size=1))
            assert (await asyncio.wrap_future(future)).hypotheses
            gc.disable()  # a frozen one would find no cycles either
            del old
        await until(lambda: runner() is None)
        unloads = {"model": "m", "reason": "replaced"}
        await until(lambda: metrics.registry.get_sample_value("babelserve_model_unloads_total", unloads) == 1)
        shutil.rmtree(models / "m")
        await until(lambda: [each.manifest.name for each in catalogue.models] == ["n"])
    finally:
        gc.enable()
        watching.cancel()
        await asyncio.to_thread(catalogue.stop)


async def test_a_fault_of_ours_is_logged_and_the_next_change_taken(
    tmp_path: Path,
    metrics: Metrics,
    tiny_bundle: Bundle,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    add = Add(tmp_path / "models", tiny_bundle.directory)
    add("m/1")
    loader, catalogue = loader_of(tmp_path / "models", metrics), Catalogue(metrics.catalogue)
    for model in loader.load_all():
        catalogue.put(model)
    changed, looks = loader.changed, iter([RuntimeError("no idea")])

    def fail_once() -> list[str]:
        for error in looks:
            raise error
        return changed()

    monkeypatch.setattr(loader, "changed", fail_once)
    with caplog.at_level(logging.ERROR, "server.models.folder_watch"):
        watching = asyncio.create_task(watch_folder(loader, catalogue, poll_seconds=0.01))
        add("m/2")
        try:
            await until(lambda: catalogue.models[0].manifest.version == "2")
        finally:
            watching.cancel()
            await asyncio.to_thread(catalogue.stop)

    messages = [record.getMessage() for record in caplog.records if record.name == "server.models.folder_watch"]
    assert messages == ["models: the folder could not be followed; it will be looked at again"]


async def test_a_good_model_is_served_while_one_is_proved_that_never_ends(
    tmp_path: Path, metrics: Metrics, tiny_bundle: Bundle
) -> None:
    models = tmp_path / "models"
    add = Add(models, tiny_bundle.directory)
    add("first")
    settings = Settings(models=models, variant="cpu-fp32", lanes=1)
    loader, catalogue = FolderLoader(models, settings, metrics, Proofs()), Catalogue(metrics.catalogue)
    for model in loader.load_all():
        catalogue.put(model)
    del model
    watching = asyncio.create_task(watch_folder(loader, catalogue, poll_seconds=0.1))
    try:
        BUNDLES["products"](add("endless"))
        await until(lambda: "endless" in loader.wanted)
        add("good")
        await until(lambda: catalogue.names == ["first", "good"])
        await until(lambda: "endless" in loader.wanted)
        assert not loader.bundles.has_refused("endless")
        shutil.rmtree(models / "endless")
        await until(lambda: 'model="endless"' not in generate_latest(metrics.registry).decode())
    finally:
        watching.cancel()
        await asyncio.to_thread(catalogue.stop)


async def test_a_version_whose_proof_is_killed_is_proved_again_and_served(
    tmp_path: Path, metrics: Metrics, tiny_bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_loader, "_PAUSE_SECONDS", 0.1)
    add, proved = Add(tmp_path / "models", tiny_bundle.directory), list[str]()

    async def prove(directory: Path, *_: object) -> list[str]:
        proved.append(directory.name)
        if len(proved) < 3:
            raise Unproved(["it was ended by SIGKILL"])
        return []

    settings = Settings(models=tmp_path / "models", variant="cpu-fp32", lanes=1)
    add("m/1")
    loader = FolderLoader(tmp_path / "models", settings, metrics, Proofs(prove))
    catalogue = Catalogue(metrics.catalogue)
    for model in loader.load_all():
        catalogue.put(model)
    del model
    watching = asyncio.create_task(watch_folder(loader, catalogue, poll_seconds=0.01))
    try:
        add("m/2")
        await until(lambda: catalogue.models[0].manifest.version == "2")
    finally:
        watching.cancel()
        await asyncio.to_thread(catalogue.stop)

    assert proved == ["2"] * 3


async def test_metrics_of_a_refused_model_go_with_its_folder(
    tmp_path: Path, metrics: Metrics, tiny_bundle: Bundle
) -> None:
    models = tmp_path / "models"
    add = Add(models, tiny_bundle.directory)
    add("good")
    (add("bad") / "manifest.json").write_text("{")
    loader, catalogue = loader_of(models, metrics), Catalogue(metrics.catalogue)
    for model in loader.load_all():
        catalogue.put(model)
    del model
    refused = {"model": "bad"}
    assert metrics.registry.get_sample_value("babelserve_model_last_load_successful", refused) == 0
    watching = asyncio.create_task(watch_folder(loader, catalogue, poll_seconds=0.01))
    try:
        shutil.rmtree(models / "bad")
        await until(lambda: 'model="bad"' not in generate_latest(metrics.registry).decode())
    finally:
        watching.cancel()
        await asyncio.to_thread(catalogue.stop)
