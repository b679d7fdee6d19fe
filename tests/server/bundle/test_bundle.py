import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle, open_bundle
from server.bundle.files import describe_file
from server.bundle.manifest import seal_manifest
from server.errors import BundleError


@pytest.fixture
def copy(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    """A copy of the tiny bundle that a test may damage."""
    return Path(shutil.copytree(tiny_bundle.directory, tmp_path / "copy"))


def faults_of(directory: Path, variant: str | None = None) -> list[str]:
    with pytest.raises(BundleError) as error:
        open_bundle(directory, variant)
    return error.value.faults


def test_whole_bundle_opens(tiny_bundle: Bundle, copy: Path) -> None:
    assert open_bundle(copy).manifest == tiny_bundle.manifest


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


@pytest.mark.parametrize("file", ["encoder.onnx", "weights.bin"])
def test_a_file_that_a_variant_needs_is_missed_if_the_manifest_does_not_name_it(copy: Path, file: str) -> None:
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    del manifest["variants"]["cpu-fp32"]["files"][file]
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    seal_manifest(copy)

    (fault,) = faults_of(copy)
    assert f"variants.cpu-fp32.files lacks {file}" in fault


def test_an_extra_file_is_checked_like_the_others(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    (copy / "extra.txt").write_bytes(b"hello")
    manifest["extra_files"] = {"extra.txt": dataclasses.asdict(describe_file(copy / "extra.txt"))}
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    seal_manifest(copy)
    open_bundle(copy)

    (copy / "extra.txt").write_bytes(b"hell")

    assert faults_of(copy) == [f"{copy / 'extra.txt'}: has 4 bytes, the manifest says 5"]


def test_unknown_variant_is_named_with_those_there_are(copy: Path) -> None:
    (fault,) = faults_of(copy, "cpu-int4")

    assert "has no variant cpu-int4; it has cpu-fp32, cpu-int8, cuda-fp16" in fault


def test_a_variant_that_is_opened_is_held_whatever_becomes_of_its_files(copy: Path, tiny_bundle: Bundle) -> None:
    bundle = open_bundle(copy, "cpu-fp32")
    shutil.rmtree(copy)

    for name in ("tokenizer.model", "cpu-fp32/weights.bin", "cpu-fp32/encoder.onnx"):
        assert bundle.read(name) == tiny_bundle.read(name)


def test_what_is_not_held_is_verified_when_it_is_read(copy: Path) -> None:
    bundle = open_bundle(copy)
    (copy / "cpu-fp32" / "encoder.onnx").write_bytes(b"another")

    assert bundle.contents == {}
    with pytest.raises(BundleError, match=r"encoder\.onnx: has 7 bytes, the manifest says"):
        bundle.read("cpu-fp32/encoder.onnx")


def test_a_file_that_the_manifest_does_not_name_is_not_read(copy: Path) -> None:
    (copy / "extra.txt").write_bytes(b"hello")

    with pytest.raises(BundleError, match=r"extra\.txt: is not in the manifest"):
        open_bundle(copy).read("extra.txt")
