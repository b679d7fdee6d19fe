"""What a manifest may say; the files that it names are not there."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.bundle.bundle import Bundle
from server.bundle.manifest import REVISION, seal_manifest
from server.bundle.manifest_file import read_manifest
from server.bundle.masking import Masking
from server.errors import BundleError
from server.settings.settings import BUILTIN_BUNDLE

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def directory(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    """Holds the tiny bundle's manifest, which a test may change, and nothing else."""
    (tmp_path / "manifest.json").write_text(tiny_bundle.manifest.to_json(), encoding="utf-8")
    return tmp_path


def change_manifest(directory: Path, change: Change) -> None:
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def faults_of(directory: Path) -> list[str]:
    with pytest.raises(BundleError) as error:
        read_manifest(directory)
    return error.value.faults


def read_golden(directory: Path) -> list[int]:
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    ids: list[int] = manifest["golden"]["source_ids"]
    return ids


def test_what_is_written_is_read(tiny_bundle: Bundle, directory: Path) -> None:
    assert read_manifest(directory) == tiny_bundle.manifest


@pytest.mark.parametrize("revision", [3, REVISION + 1])
def test_other_revision_is_refused_before_anything_else(directory: Path, revision: int) -> None:
    change_manifest(directory, lambda manifest: manifest.update(revision=revision, name=None))

    (fault,) = faults_of(directory)
    assert f"revision is {revision}; this server reads revisions 4, 5, 6, 7, 8, 9, 10, 11 and 12" in fault


def test_a_manifest_of_revision_4_is_read(tiny_bundle: Bundle, directory: Path) -> None:
    def make_old(manifest: dict[str, Any]) -> None:
        manifest["revision"] = 4
        for name in ("languages", "source_eos", "search", "masking", "origin"):
            del manifest[name]
        del manifest["states"]
        del manifest["dimensions"]["source_vocab_size"]
        for name in ("source_language", "target_language"):
            del manifest["golden"][name]
        for name in ("source_prefix", "target_prefix"):
            del manifest["language_pairs"][0][name]
        for variant in manifest["variants"].values():
            del variant["halves"]

    change_manifest(directory, make_old)

    manifest = tiny_bundle.manifest
    golden = dataclasses.replace(manifest.golden, source_language="", target_language="")
    variants = {name: dataclasses.replace(variant, halves=None) for name, variant in manifest.variants.items()}
    assert read_manifest(directory) == dataclasses.replace(
        manifest, revision=4, golden=golden, masking=Masking(), variants=variants
    )


def test_the_built_in_manifest_is_read() -> None:
    manifest = read_manifest(BUILTIN_BUNDLE)

    assert (manifest.source_codes, manifest.target_codes) == (("en",), ("de",))


@pytest.mark.parametrize("text", ["", "[]", '"text"', "{", "null", "[" * 100_000])
def test_manifest_that_is_no_object_is_refused(directory: Path, text: str) -> None:
    (directory / "manifest.json").write_text(text, encoding="utf-8")

    assert len(faults_of(directory)) == 1


def test_manifest_that_is_no_text_is_refused(directory: Path) -> None:
    (directory / "manifest.json").write_bytes(b"\xff\xfe\x00")

    (fault,) = faults_of(directory)
    assert "manifest.json: cannot be read" in fault


def test_missing_directory_is_a_fault_and_no_crash(tmp_path: Path) -> None:
    assert "cannot be read" in faults_of(tmp_path / "nowhere")[0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda m: m.pop("name"), "name is missing"),
        (lambda m: m.update(extra=1), "extra is unknown"),
        (lambda m: m.update(name=3), "name must be str, not int"),
        (lambda m: m["limits"].update(max_beam_size=True), "limits.max_beam_size must be int, not bool"),
        (lambda m: m["limits"].update(max_beam_size=0), "limits.max_beam_size must be in 1..16, not 0"),
        (lambda m: m["limits"].update(max_beam_size=17), "limits.max_beam_size must be in 1..16, not 17"),
        (lambda m: m["dimensions"].update(source_vocab_size=0), "source_vocab_size must be in 1..1048576, not 0"),
        (lambda m: m["dimensions"].update(decoder_mixer="ssru"), "dimensions.decoder_mixer is unknown"),
        (lambda m: m.pop("states"), "states is missing"),
        (lambda m: m["states"][0].update(kind="shrinking"), "states[0].kind must be one of growing, window, fixed"),
        (lambda m: m["search"].update(beam_size=17), "search.beam_size must be in 1..16, not 17"),
        (lambda m: m["search"].update(length_penalty=11), "search.length_penalty must be in 0..10, not 11"),
        (lambda m: m["masking"].update(num_placeholders=6401), "num_placeholders must be in 0..6400, not 6401"),
        (lambda m: m["masking"].update(codes=["%"]), "masking.codes must each have {} once"),
        (lambda m: m["masking"].update(codes=["123456789{}"]), "in at most 8 printable ASCII characters"),
        (lambda m: m["masking"].update(codes=["\x1b{}"]), "printable ASCII"),
        (lambda m: m["masking"].update(codes=["%{}"] * 5), "masking.codes must be at most 4, not 5"),
        (lambda m: m["alignment"].update(heads=[]), "alignment.heads is empty"),
        (lambda m: m["alignment"]["heads"][0].update(layer=2), "alignment.heads[0].layer must be in 0..1, not 2"),
        (lambda m: m["alignment"]["heads"][0].update(head=-1), "alignment.heads[0].head must be in 0..3, not -1"),
        (lambda m: m["variants"]["cpu-int8"]["files"].pop("aligner.onnx"), "cpu-int8.files lacks aligner.onnx"),
        (lambda m: m.update(search=[]), "search must be an object, not list"),
        (lambda m: m.update(languages={"source": []}), "languages.source must be dict[str, "),
        (
            lambda m: m.update(tokenizer=None),
            "either tokenizer describes tokenizer.model, or extra_files has source.spm or moses.json",
        ),
        (
            lambda m: m["extra_files"].update({"moses.json": m["tokenizer"]}),
            "either tokenizer describes tokenizer.model, or extra_files has source.spm or moses.json",
        ),
        (
            lambda m: m["extra_files"].update({"moses.json": m.pop("tokenizer")}),
            "extra_files lacks source_pieces.json, which moses.json needs",
        ),
        (lambda m: m["dimensions"].update(encoder_layers=0), "dimensions.encoder_layers must be in 1..256, not 0"),
        (lambda m: m["dimensions"].update(decoder_layers=10**9), "decoder_layers must be in 1..256, not 1000000000"),
        (lambda m: m["dimensions"].update(vocab_size=2**21), "vocab_size must be in 1..1048576, not 2097152"),
        (lambda m: m["limits"].update(max_target_tokens=8193), "limits.max_target_tokens must be in 1..8192, not 8193"),
        (lambda m: m["golden"].update(beam_size=17), "golden.beam_size must be in 1..16, not 17"),
        (lambda m: m["golden"].update(source_ids=[]), "golden.source_ids must be 1..64 tokens, not 0"),
        (lambda m: m["golden"].update(source_ids=[3] * 65), "golden.source_ids must be 1..64 tokens, not 65"),
        (lambda m: m["golden"].update(source_ids=[700]), "golden.source_ids must be in 0..699, not 700"),
        *(
            (lambda m, name=name: m.update(name=name), "must have 1..128 characters, all printable")
            for name in ("", "x\0", "a\nb", "x" * 129)
        ),
        (lambda m: m["language_pairs"][0].update(source="e\u202en"), "must have 1..128 characters, all printable"),
        (lambda m: m["special_ids"].update(eos=-1), "special_ids.eos must be in 0..699, not -1"),
        (lambda m: m["special_ids"].update(pad=700), "special_ids.pad must be in 0..699, not 700"),
        (lambda m: m.update(language_pairs=[]), "either language_pairs or languages must say what is translated"),
        (lambda m: m.update(languages={"source": {}, "target": {}}), "either language_pairs or languages must say"),
        (lambda m: m["language_pairs"][0].update(source_prefix=[700]), "[0].source_prefix must be in 0..699, not 700"),
        (lambda m: m["language_pairs"][0].update(target_prefix=[-1]), "[0].target_prefix must be in 0..699, not -1"),
        (
            lambda m: m["language_pairs"][0].update(target_prefix=[5] * 200),
            "language_pairs[0].target_prefix has 200 ids, too many for limits.max_target_tokens, ",
        ),
        (
            lambda m: m["golden"].update(target_language="fr"),
            "golden.source_language and golden.target_language must be a direction that is translated",
        ),
        (lambda m: m.update(language_pairs=[{"source": "en"}]), "language_pairs[0].target is missing"),
        (lambda m: m.update(variants={}), "variants is empty"),
        (
            lambda m: m["variants"].update({"cpu-int4": m["variants"]["cpu-int8"]}),
            "variants.cpu-int4: unknown variant; known are cpu-fp32, cpu-int8, cuda-fp16",
        ),
        (lambda m: m["variants"]["cpu-int8"].update(dtype="float32"), "variants.cpu-int8.dtype must be int8, not "),
        (
            lambda m: m["variants"]["cpu-fp32"].update(embedding_offset=-1),
            "variants.cpu-fp32.embedding_offset must be at least 0, not -1",
        ),
        (
            lambda m: m["variants"]["cpu-fp32"]["halves"].update(bytes=7),
            "variants.cpu-fp32.halves: float32 cannot have 7 bytes of float16",
        ),
        (
            lambda m: m["variants"]["cpu-int8"].update(halves=m["variants"]["cpu-fp32"]["halves"]),
            "variants.cpu-int8.halves: int8 cannot have ",
        ),
        (
            lambda m: m["variants"]["cpu-fp32"]["halves"].update(sha256="0"),
            "variants.*.halves must describe one file, not several",
        ),
        (lambda m: m["golden"]["outputs"].pop("cpu-int8"), "golden.outputs lacks cpu-int8"),
        (
            lambda m: m["variants"]["cpu-fp32"]["files"].update(
                {"decoder_step_shortlist.onnx": {"sha256": "", "bytes": 0}}
            ),
            "extra_files lacks shortlist.npz, which steps of variants.cpu-fp32 need",
        ),
        *(
            (
                lambda m, name=name: m["variants"]["cpu-fp32"]["files"].update({name: {"sha256": "", "bytes": 0}}),
                f"variants.cpu-fp32.files: {name!r} is not a plain file name",
            )
            for name in ("../x", "..", ".", "/x", "x/y", "", "x\0y", "x\ny", "x" * 200)
        ),
        (
            lambda m: m["extra_files"].update({f"x{i}": {"sha256": "", "bytes": 0} for i in range(17)}),
            "extra_files: must be at most 16 files, not 17",
        ),
        (
            lambda m: m["extra_files"].update({"../x": {"sha256": "", "bytes": 0}}),
            "extra_files: '../x' is not a plain file name",
        ),
    ],
)
def test_each_fault_of_a_manifest_is_named(directory: Path, change: Change, expected: str) -> None:
    change_manifest(directory, change)

    assert any(expected in fault for fault in faults_of(directory))


def test_faults_of_languages_are_listed_at_once(directory: Path) -> None:
    def speak(manifest: dict[str, Any]) -> None:
        manifest["language_pairs"] = []
        manifest["languages"] = {
            "source": {"deu_Latn": {"prefix": [700]}, "en": {"prefix": [1] * 63}, "no code": {}},
            "target": {"en": {"source_prefix": [-1], "prefix": [900]}},
        }
        manifest["golden"] |= {"source_language": "en", "target_language": "en"}

    change_manifest(directory, speak)

    assert [fault.partition(": ")[2] for fault in faults_of(directory)] == [
        "languages.source: deu_Latn must be written as BCP-47 has it, de",
        "languages.source: 'no code' is no BCP-47 code",
        "languages.source.deu_Latn.prefix must be in 0..699, not 700",
        "languages.source.en.prefix has 63 ids, too many for limits.max_source_tokens, 64",
        "languages.target.en.source_prefix must be in 0..699, not -1",
        "languages.target.en.prefix must be in 0..699, not 900",
        "golden.source_language and golden.target_language must be a direction that is translated",
    ]


def test_source_ids_are_held_against_the_sources_vocabulary(directory: Path) -> None:
    def separate(manifest: dict[str, Any]) -> None:
        manifest["dimensions"]["source_vocab_size"] = 10
        manifest["language_pairs"][0] |= {"source_prefix": [10], "target_prefix": [699]}

    change_manifest(directory, separate)

    assert [fault.partition(": ")[2] for fault in faults_of(directory)] == [
        "language_pairs[0].source_prefix must be in 0..9, not 10",
        f"golden.source_ids must be in 0..9, not {next(i for i in read_golden(directory) if i > 9)}",
    ]


def test_all_faults_of_a_manifest_are_listed_at_once(directory: Path) -> None:
    def damage(manifest: dict[str, Any]) -> None:
        del manifest["name"]
        manifest["limits"]["max_source_tokens"] = "many"
        manifest["surprise"] = {}

    change_manifest(directory, damage)

    assert len(faults_of(directory)) == 3


def test_of_very_many_faults_some_are_listed(directory: Path) -> None:
    change_manifest(directory, lambda m: m.update({f"unknown_{i}": 0 for i in range(100)}))

    faults = faults_of(directory)
    assert (len(faults), faults[-1].rpartition(": ")[2]) == (21, "and 80 faults more")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"revision": 4, "revision": 4}', "a key twice"),
        ('{"revision": NaN}', "NaN is no number"),
        ('{"name": "\\ud800"}', "surrogates not allowed"),
        ('{"training": ' + "[" * 2000 + "]" * 2000 + "}", "nested too deeply"),
        ('{"revision": ' + "9" * 5000 + "}", "cannot be read"),
    ],
)
def test_json_that_may_say_two_things_or_too_much_is_refused(directory: Path, text: str, reason: str) -> None:
    (directory / "manifest.json").write_text(text, encoding="utf-8")

    (fault,) = faults_of(directory)
    assert reason in fault


def test_a_manifest_without_a_seal_is_read_and_a_warning_logged(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read_manifest(directory)
    assert "the manifest has no seal, manifest.json.sha256" in caplog.text

    caplog.clear()
    seal_manifest(directory)
    read_manifest(directory)
    assert caplog.text == ""


def test_a_manifest_that_its_seal_does_not_fit_is_refused(directory: Path) -> None:
    seal_manifest(directory)
    change_manifest(directory, lambda m: m.update(version="1"))

    assert faults_of(directory) == [
        f"{directory / 'manifest.json'}: is not what manifest.json.sha256 has sealed, or that is damaged"
    ]


def test_a_seal_that_cannot_be_read_is_not_passed_over(directory: Path) -> None:
    (directory / "manifest.json.sha256").symlink_to("nowhere")

    assert "manifest.json.sha256: cannot be read" in faults_of(directory)[0]
