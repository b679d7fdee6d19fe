import json
import shutil
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from server.bundle.manifest import MANIFEST_FILE, seal_manifest
from server.errors import BundleError
from server.models.checking import check_bundle
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics


def copied(tiny_bundle: Bundle, directory: Path, **limits: int) -> Path:
    """A copy of the bundle, with other limits."""
    copy = directory / "bundle"
    shutil.copytree(tiny_bundle.directory, copy)
    document = json.loads((copy / MANIFEST_FILE).read_text(encoding="utf-8"))
    document["limits"] |= limits
    (copy / MANIFEST_FILE).write_text(json.dumps(document), encoding="utf-8")
    seal_manifest(copy)
    return copy


def test_a_whole_bundle_is_checked_variant_by_variant(tiny_bundle: Bundle, metrics: Metrics) -> None:
    lines = list(check_bundle(tiny_bundle.directory, Settings(), metrics))

    assert [line.split(":")[0] for line in lines] == ["tiny 0", *tiny_bundle.manifest.variants]


def test_a_faulty_bundle_does_not_pass_the_check(tiny_bundle: Bundle, tmp_path: Path, metrics: Metrics) -> None:
    bundle = copied(tiny_bundle, tmp_path)
    (bundle / "cpu-int8" / "encoder.onnx").write_bytes(b"")

    with pytest.raises(BundleError, match=r"cpu-int8/encoder\.onnx"):
        list(check_bundle(bundle, Settings(), metrics))


@pytest.mark.parametrize("side", ["source", "target"])
def test_limits_beyond_the_models_positions_are_refused(
    tiny_bundle: Bundle, tmp_path: Path, metrics: Metrics, side: str
) -> None:
    num_positions = tiny_bundle.manifest.training["recipe"]["model"]["max_positions"]
    field = f"max_{side}_tokens"
    copied(tiny_bundle, tmp_path, **{field: num_positions})
    list(check_bundle(tmp_path / "bundle", Settings(variant="cpu-fp32"), metrics))
    shutil.rmtree(tmp_path / "bundle")
    beyond = copied(tiny_bundle, tmp_path, **{field: num_positions + 1})

    with pytest.raises(BundleError, match=rf"limits.{field}, {num_positions + 1}: it is beyond"):
        list(check_bundle(beyond, Settings(), metrics))
