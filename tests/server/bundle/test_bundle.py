import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.bundle.bundle import Bundle, open_bundle
from server.bundle.graphs import cache_names
from server.bundle.manifest import REVISION
from server.errors import BundleError

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def copy(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    """A copy of the tiny bundle that a test may damage."""
    return Path(shutil.copytree(tiny_bundle.directory, tmp_path / "copy"))


def change_manifest(directory: Path, change: Change) -> None:
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def faults_of(directory: Path, variant: str | None = None) -> list[str]:
    with pytest.raises(BundleError) as error:
        open_bundle(directory, variant)
    return error.value.faults


def test_whole_bundle_opens(tiny_bundle: Bundle, copy: Path) -> None:
    assert open_bundle(copy).manifest == tiny_bundle.manifest


def test_cache_names_are_key_and_value_of_each_layer() -> None:
    assert cache_names("cross", 2) == ["cross_key.0", "cross_value.0", "cross_key.1", "cross_value.1"]


@pytest.mark.parametrize(("variant", "itemsize"), [("cpu-fp32", 4), ("cpu-int8", 1), ("cuda-fp16", 2)])
def test_a_position_takes_a_key_and_a_value_of_each_decoder_layer(
    tiny_bundle: Bundle, variant: str, itemsize: int
) -> None:
    sizes = tiny_bundle.manifest.dimensions

    assert tiny_bundle.manifest.position_bytes(variant) == 2 * sizes.decoder_layers * sizes.d_model * itemsize


def test_flipped_bit_is_found_by_its_hash(copy: Path) -> None:
    path = copy / "cpu-fp32" / "weights.bin"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)

    (fault,) = faults_of(copy)
    assert "weights.bin: sha256 is" in fault


def test_only_the_chosen_variant_is_checked(copy: Path) -> None:
    (copy / "cpu-int8" / "encoder.onnx").unlink()

    assert open_bundle(copy, "cpu-fp32").directory == copy
    assert "encoder.onnx: cannot be read" in faults_of(copy, "cpu-int8")[0]


def test_every_damaged_file_is_listed(copy: Path) -> None:
    (copy / "tokenizer.model").write_bytes(b"")
    (copy / "cpu-fp32" / "encoder.onnx").unlink()
    (copy / "cuda-fp16" / "decoder_step.onnx").write_bytes(b"short")

    assert len(faults_of(copy)) == 3


def test_unknown_variant_is_named_with_those_there_are(copy: Path) -> None:
    (fault,) = faults_of(copy, "cpu-int4")

    assert "has no variant cpu-int4; it has cpu-fp32, cpu-int8, cuda-fp16" in fault


@pytest.mark.parametrize("revision", [REVISION - 1, REVISION + 1])
def test_other_revision_is_refused_before_anything_else(copy: Path, revision: int) -> None:
    change_manifest(copy, lambda manifest: manifest.update(revision=revision, name=None))

    (fault,) = faults_of(copy)
    assert f"revision is {revision}; this server reads revision {REVISION}" in fault


@pytest.mark.parametrize("text", ["", "[]", '"text"', "{", "null"])
def test_manifest_that_is_no_object_is_refused(copy: Path, text: str) -> None:
    (copy / "manifest.json").write_text(text, encoding="utf-8")

    assert len(faults_of(copy)) == 1


def test_missing_directory_is_a_fault_and_no_crash(tmp_path: Path) -> None:
    assert "cannot be read" in faults_of(tmp_path / "nowhere")[0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda m: m.pop("name"), "name is missing"),
        (lambda m: m.update(extra=1), "extra is unknown"),
        (lambda m: m.update(name=3), "name must be str, not int"),
        (lambda m: m["limits"].update(max_beam_size=True), "limits.max_beam_size must be int, not bool"),
        (lambda m: m["limits"].update(max_beam_size=0), "max_beam_size must be at least 1, not 0"),
        (lambda m: m["limits"].update(max_beam_size=17), "limits.max_beam_size must be at most 16, not 17"),
        (lambda m: m["dimensions"].update(head_dim=5), "d_model 32 is not num_heads * head_dim"),
        (lambda m: m["special_ids"].update(eos=-1), "special_ids.eos must be in 0..699, not -1"),
        (lambda m: m.update(language_pairs=[]), "language_pairs is empty"),
        (lambda m: m.update(language_pairs=[{"source": "en"}]), "language_pairs[0].target is missing"),
        (lambda m: m["golden"]["outputs"].pop("cpu-int8"), "golden.outputs lacks cpu-int8"),
        (
            lambda m: m["variants"]["cpu-fp32"]["files"].pop("encoder.onnx"),
            "variants.cpu-fp32.files lacks encoder.onnx",
        ),
        (
            lambda m: m["variants"]["cpu-fp32"]["files"].pop("weights.bin"),
            "variants.cpu-fp32.files lacks weights.bin",
        ),
        (
            lambda m: m["variants"]["cpu-fp32"]["files"].update(
                {"decoder_step_shortlist.onnx": {"sha256": "", "bytes": 0}}
            ),
            "extra_files lacks shortlist.npz, which steps of variants.cpu-fp32 need",
        ),
        (
            lambda m: m["variants"]["cpu-fp32"]["files"].update({"../x": {"sha256": "", "bytes": 0}}),
            "'../x' is not a plain file name",
        ),
    ],
)
def test_each_fault_of_a_manifest_is_named(copy: Path, change: Change, expected: str) -> None:
    change_manifest(copy, change)

    assert any(expected in fault for fault in faults_of(copy))


def test_all_faults_of_a_manifest_are_listed_at_once(copy: Path) -> None:
    def damage(manifest: dict[str, Any]) -> None:
        del manifest["name"]
        manifest["limits"]["max_source_tokens"] = "many"
        manifest["surprise"] = {}

    change_manifest(copy, damage)

    assert len(faults_of(copy)) == 3


def test_link_out_of_the_bundle_is_refused(copy: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (copy / "tokenizer.model").rename(outside)
    (copy / "tokenizer.model").symlink_to(outside)

    assert "leads out of the bundle" in faults_of(copy)[0]
