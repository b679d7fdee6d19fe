import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle, describe_file, open_bundle
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

    (fault,) = faults_of(copy)
    assert f"variants.cpu-fp32.files lacks {file}" in fault


def test_an_extra_file_is_checked_like_the_others(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    (copy / "extra.txt").write_bytes(b"hello")
    manifest["extra_files"] = {"extra.txt": dataclasses.asdict(describe_file(copy / "extra.txt"))}
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    open_bundle(copy)

    (copy / "extra.txt").write_bytes(b"hell")

    assert faults_of(copy) == [f"{copy / 'extra.txt'}: has 4 bytes, the manifest says 5"]


def test_a_file_is_described_by_its_hash_and_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")

    facts = describe_file(tmp_path / "file")

    assert facts.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, B.1
    assert facts.bytes == 3


def test_unknown_variant_is_named_with_those_there_are(copy: Path) -> None:
    (fault,) = faults_of(copy, "cpu-int4")

    assert "has no variant cpu-int4; it has cpu-fp32, cpu-int8, cuda-fp16" in fault


def test_link_out_of_the_bundle_is_refused(copy: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (copy / "tokenizer.model").rename(outside)
    (copy / "tokenizer.model").symlink_to(outside)

    assert "leads out of the bundle" in faults_of(copy)[0]
