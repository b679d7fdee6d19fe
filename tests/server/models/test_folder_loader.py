import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.bundle.bundle import Bundle
from server.errors import BundleError, SettingsError
from server.models.folder_loader import Change, FolderLoader
from server.models.model import Model
from server.models.proofs import Proofs
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.server.models.administered import NothingToProve


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


class Add:
    """Puts copies of the tiny bundle into the folder of models."""

    def __init__(self, models: Path, bundle: Path) -> None:
        self._models, self._bundle = models, bundle

    def __call__(self, path: str, *, is_broken: bool = False) -> Path:
        directory = self._models / path
        shutil.copytree(self._bundle, directory)
        if is_broken:
            os.truncate(directory / "cpu-fp32" / "weights.bin", 10)
        return directory


@pytest.fixture
def add(models: Path, tiny_bundle: Bundle) -> Add:
    return Add(models, tiny_bundle.directory)


def loader_of(models: Path, metrics: Metrics, **settings: object) -> FolderLoader:
    given = {"models": models, "variant": "cpu-fp32", "lanes": 1} | settings
    return FolderLoader(models, Settings(**given), metrics, NothingToProve())  # type: ignore[arg-type]


@contextlib.contextmanager
def loaded(loader: FolderLoader) -> Iterator[dict[str, Model]]:
    models = {model.manifest.name: model for model in loader.load_all()}
    try:
        yield models
    finally:
        for model in models.values():
            model.stop()


def settled(loader: FolderLoader) -> list[str]:
    """Names that have changed, at the second look."""
    assert loader.changed() == []
    return loader.changed()


def sample(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"babelserve_{name}", labels)


def test_the_highest_good_version_of_each_model_is_served_by_the_folders_names(
    models: Path, metrics: Metrics, add: Add, caplog: pytest.LogCaptureFixture
) -> None:
    add("flat")
    add("versions/9")
    add("versions/10")
    add("versions/11", is_broken=True)
    (models / "a b").mkdir()

    with loaded(loader_of(models, metrics)) as found:
        versions = {name: model.manifest.version for name, model in found.items()}

    assert versions == {"flat": "0", "versions": "10"}
    assert sample(metrics, "model_loads_total", model="versions", outcome="refused") == 1
    assert sample(metrics, "model_last_load_successful", model="versions") == 1
    refused = [vars(record)["facts"] for record in caplog.records if record.getMessage() == "a model is refused"]
    assert [(facts["model"], facts["model_version"]) for facts in refused] == [("versions", "11")]
    assert "weights.bin: has 10 bytes" in refused[0]["error"]


def sha256_of(model: Model) -> str:
    return model.manifest.variants[model.variant].sha256


def test_a_folder_without_a_good_model_lists_all_faults(models: Path, metrics: Metrics, add: Add) -> None:
    add("one", is_broken=True)
    add("two/1", is_broken=True)

    with pytest.raises(BundleError) as caught:
        loader_of(models, metrics).load_all()

    paths = [models / name / "cpu-fp32" / "weights.bin" for name in ("one", "two/1")]
    assert [fault.partition(":")[0] for fault in caught.value.faults] == list(map(str, paths))
    shutil.rmtree(models / "one")
    shutil.rmtree(models / "two")
    with pytest.raises(BundleError, match="holds no model"):
        loader_of(models, metrics).load_all()


def test_a_default_that_is_not_served_is_told(models: Path, metrics: Metrics, add: Add) -> None:
    add("one")

    with pytest.raises(SettingsError, match="--default: two is not served; one are"):
        loader_of(models, metrics, default="one,two").load_all()


def test_a_version_that_is_put_in_is_loaded_when_it_is_whole(models: Path, metrics: Metrics, add: Add) -> None:
    add("m/1")
    loader = loader_of(models, metrics)
    with loaded(loader):
        assert settled(loader) == []
        add("m/2")
        assert settled(loader) == ["m"]
        change = loader.load("m")
        assert change is not None
        assert change.model is not None
        change.model.stop()
        assert change.model.manifest.version == "2"
        assert loader.load("m") is None
        assert settled(loader) == []


def test_a_model_that_is_loaded_by_hand_leaves_others_to_be_seen_twice(
    models: Path, metrics: Metrics, add: Add
) -> None:
    add("m/1")
    add("n/1")
    loader = loader_of(models, metrics)
    with loaded(loader):
        add("m/2")
        add("n/2")
        loader.load_highest("m").stop()

        assert [loader.changed(), loader.changed()] == [[], ["n"]]


def test_a_version_that_is_loaded_by_hand_without_a_proof_has_changed(models: Path, metrics: Metrics, add: Add) -> None:
    add("m/1")
    loader = FolderLoader(models, Settings(models=models, variant="cpu-fp32", lanes=1), metrics, Proofs())
    with loaded(loader):
        add("m/2")
        with pytest.raises(BundleError, match=r"models/m has changed while it was proved"):
            loader.load_highest("m")
        with pytest.raises(BundleError, match=r"models/n holds no bundle"):
            loader.load_highest("n")


def test_a_broken_version_is_refused_once_and_a_lower_one_taken_back(models: Path, metrics: Metrics, add: Add) -> None:
    add("m/1")
    loader = loader_of(models, metrics)
    with loaded(loader):
        add("m/2", is_broken=True)
        assert settled(loader) == ["m"]
        for _ in range(2):
            assert loader.load("m") is None
        assert sample(metrics, "model_last_load_successful", model="m") == 0
        assert sample(metrics, "model_loads_total", model="m", outcome="refused") == 1
        add("m/0")
        shutil.rmtree(models / "m" / "1")
        assert settled(loader) == ["m"]
        change = loader.load("m")
        assert change is not None
        assert change.model is not None
        change.model.stop()
        assert change.model.manifest.version == "0"


def test_no_more_than_the_highest_versions_are_tried(
    models: Path, metrics: Metrics, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.models.folder_loader._MOST_TRIED", 3)
    add("m/1")
    loader = loader_of(models, metrics)
    with loaded(loader):
        for version in range(2, 10):
            (models / "m" / str(version)).mkdir()
        assert settled(loader) == ["m"]
        assert loader.load("m") is None
        assert sample(metrics, "model_loads_total", model="m", outcome="refused") == 3


def test_a_model_is_served_until_its_folder_has_gone_and_a_mount_comes_back(
    models: Path, metrics: Metrics, add: Add, caplog: pytest.LogCaptureFixture
) -> None:
    add("m/1")
    add("n")
    loader = loader_of(models, metrics)
    with loaded(loader):
        shutil.rmtree(models / "m" / "1")
        assert settled(loader) == ["m"]
        assert loader.load("m") is None
        shutil.rmtree(models / "m")
        assert settled(loader) == ["m"]
        assert loader.load("m") == Change("m", None)
        models.rename(models.with_name("away"))
        assert [loader.changed(), loader.changed()] == [[], []]
        models.mkdir()
        assert [loader.changed(), loader.changed()] == [[], []]
        (models / "a b").mkdir()
        assert [loader.changed(), loader.changed()] == [[], []]
        (models / "z").mkdir()
        assert [loader.changed(), loader.changed()] == [[], []], "no bundle is there"
    stay = "models: they stay as they are: "
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"{stay}--models: {models} cannot be read: No such file or directory",
        f"{stay}{models} holds none",
        f"{stay}{models / 'a b'}: no name of a model: letters, digits, '.', '_' and '-', at most 64",
    ]


def test_a_folder_that_is_no_model_is_told_once_whenever_it_comes(
    models: Path, metrics: Metrics, add: Add, caplog: pytest.LogCaptureFixture
) -> None:
    add("m")
    loader = loader_of(models, metrics)

    def told() -> int:
        return sum("no name of a model" in record.getMessage() for record in caplog.records)

    with loaded(loader):
        found = [told()]
        for change in (Path.mkdir, Path.rmdir, Path.mkdir):
            change(models / "a b")
            loader.changed()
            loader.changed()
            found.append(told())

    assert found == [0, 1, 1, 2]


def test_models_are_read_first_and_loaded_one_by_one_when_they_are_wanted(
    models: Path, metrics: Metrics, add: Add
) -> None:
    add("m/1")
    (add("m/2") / "manifest.json").write_text("{}")
    add("n", is_broken=True)
    loader = loader_of(models, metrics)

    read = {each.manifest.name: each for each in loader.read_all()}
    assert {name: each.manifest.version for name, each in read.items()} == {"m": "1", "n": "0"}
    assert settled(loader) == []
    for _ in range(2):
        model = loader.load_one("m")
        assert model is not None
        model.stop()
        assert model.manifest == read["m"].manifest
    assert loader.load_one("n") is None
    assert loader.load_one("gone") is None


def test_a_manifest_that_could_not_be_read_for_now_has_changed(
    models: Path, metrics: Metrics, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("m/1")
    add("m/2")
    loader, failing = loader_of(models, metrics), [OSError(errno.EMFILE, "Too many open files")]

    def open_file(*arguments: Any, **more: Any) -> int:
        if failing:
            raise failing.pop()
        return os_open(*arguments, **more)

    os_open = os.open
    monkeypatch.setattr("server.bundle.files.os.open", open_file)
    (read,) = loader.read_all()
    assert read.manifest.version == "1"

    assert loader.changed() == ["m"]
    assert loader.load("m") is None, "it is too soon, and the other version is served"
    assert loader.changed() == ["m"]
