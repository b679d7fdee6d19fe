import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from server.errors import BundleError
from server.models.listing import list_models
from server.models.loading import needed_bytes
from server.settings.settings import Settings
from tests.acceptance.model_swaps import put_pair


def listed(models: Path) -> list[str]:
    return list(list_models(Settings(models=models, variant="cpu-fp32", lanes=1)))


def test_what_would_be_served_is_listed_with_its_memory_and_the_faults_of_the_rest(
    tiny_bundle: Bundle, tmp_path: Path
) -> None:
    for path in ("a/1", "a/2", "b"):
        shutil.copytree(tiny_bundle.directory, tmp_path / path)
    os.truncate(tmp_path / "a" / "2" / "tokenizer.model", 1)

    (tmp_path / "-c").mkdir()

    lines = list_models(Settings(models=tmp_path, variant="cpu-fp32", lanes=1))
    a, b, total = next(lines), next(lines), next(lines)
    with pytest.raises(BundleError) as raised:
        next(lines)

    mib = round(needed_bytes(tiny_bundle.manifest, "cpu-fp32") / 2**20)
    bad_name, truncated = raised.value.faults
    assert bad_name.startswith(f"{tmp_path / '-c'}: no name of a model")
    assert truncated.startswith(f"{tmp_path / 'a' / '2' / 'tokenizer.model'}: has 1 bytes")
    assert a.startswith(f"a 1 (cpu-fp32): en-de; {mib} MiB, full caches up to ")
    assert b.startswith("b 0 (cpu-fp32): en-de; ")
    assert total.startswith("2 served, about ")


def test_one_bundle_is_listed_too(tiny_bundle: Bundle) -> None:
    lines = list(list_models(Settings(bundle=tiny_bundle.directory)))

    assert [line.partition(":")[0] for line in lines[:1]] == ["tiny 0 (cpu-int8)"]


def test_a_language_that_no_text_can_pass_through_is_told(tiny_bundle: Bundle) -> None:
    _, warning, _ = list_models(Settings(bundle=tiny_bundle.directory, pivot="fr"))

    assert warning == "warning: --pivot: no text can pass through fr: models translate from en into de"


def test_a_model_that_is_more_than_all_may_take_on_demand_is_told(tiny_bundle: Bundle, tmp_path: Path) -> None:
    shutil.copytree(tiny_bundle.directory, tmp_path / "a")
    on_demand = Settings(models=tmp_path, variant="cpu-fp32", lanes=1, load="on-demand", models_memory=1)

    mib = f"{needed_bytes(tiny_bundle.manifest, 'cpu-fp32') / (1 << 20):.0f}"
    expected = f"warning: --models-memory: a takes {mib} MiB, more than 1; it will be loaded alone"
    assert list(list_models(on_demand))[1] == expected
    for settings in (dataclasses.replace(on_demand, models_memory=99), dataclasses.replace(on_demand, load="at-start")):
        assert not [line for line in list_models(settings) if line.startswith("warning")]


def test_models_that_are_called_like_versions_are_told(tiny_bundle: Bundle, tmp_path: Path) -> None:
    for name in ("1", "v2.10", "2fast", "en-de"):
        shutil.copytree(tiny_bundle.directory, tmp_path / name)

    warnings = [line for line in listed(tmp_path) if line.startswith("warning")]

    expected = "looks like a version: versions of a model are in a folder of its name, in that of --models"
    assert warnings == [f"warning: --models: the model {name} {expected}" for name in ("1", "v2.10")]


def test_the_pairs_that_a_pivot_adds_are_listed(tiny_bundle: Bundle, tmp_path: Path) -> None:
    for name, pair in (("a", ("fr", "en")), ("b", ("en", "de"))):
        put_pair(tiny_bundle.directory, tmp_path / name, *pair)
    settings = Settings(models=tmp_path, variant="cpu-fp32", lanes=1, pivot="en")

    assert list(list_models(settings))[2] == "over en: fr-de"
    assert not [line for line in listed(tmp_path) if line.startswith("over")]


def test_nothing_to_serve_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="holds no model"):
        listed(tmp_path)


def test_a_model_needs_more_than_its_weights(tiny_bundle: Bundle) -> None:
    weights = tiny_bundle.manifest.variants["cpu-fp32"].files["weights.bin"].bytes

    assert needed_bytes(tiny_bundle.manifest, "cpu-fp32") > 3 * weights
