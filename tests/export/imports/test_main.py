import importlib.util
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
import torch

from server.bundle.bundle import open_bundle
from server.bundle.tokenizer import Tokenizer
from tests.export.imports.conftest import TINY, Command


def change(path: Path, **changes: object) -> None:
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, **changes}), encoding="utf-8")


def test_a_dry_run_says_what_it_is_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    printed = command(TINY, "--dry-run")

    assert printed.startswith("OPUS-MT (Hugging Face Marian): marian-shared\n")
    assert "layers, width 48, 518 tokens\n  en into de\n" in printed
    assert "licence: unknown" in printed
    assert not list(tmp_path.iterdir())


def test_a_model_becomes_a_proven_bundle(command: Command, tmp_path: Path, copy: Path) -> None:
    (copy / "README.md").write_text("---\nlicense: apache-2.0\n---\n", encoding="utf-8")
    out = tmp_path / "out" / "bundle"

    printed = command(copy, out, "--name", "en-de", "--version", "7", "--min-chrf", 60)

    assert re.search(rf"^{out}: proven \(cpu-fp32 \d\.\d MB, cpu-int8 0\.\d MB\)$", printed, re.MULTILINE)
    bundle = open_bundle(out)
    manifest = bundle.manifest
    assert (manifest.name, manifest.version) == ("en-de", "7")
    assert manifest.origin["licence"] == "apache-2.0"
    assert manifest.source_codes == ("en",)
    assert (manifest.search.beam_size, manifest.search.early_stopping, manifest.search.forced_eos) == (4, False, True)
    for key in ("greedy_ids", "beam_4_ids"):
        assert manifest.parity[key]["equal"] + len(manifest.parity[key]["near_ties"]) == 34
    assert manifest.parity["step_logits"]["largest_difference"] <= 1e-4
    assert manifest.quality["cpu-fp32"]["chrf_to_fp32"] == 100
    assert manifest.confidence is None  # there are no references
    assert 60 <= manifest.quality["cpu-int8"]["chrf_to_fp32"] <= 100
    assert Tokenizer(manifest, bundle.read).encode("") == (manifest.special_ids.eos,)
    assert [path.name for path in out.parent.iterdir()] == ["bundle"]


def test_int8_that_is_too_far_from_float_is_left_out(
    command: Command, tmp_path: Path, copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out" / "bundle"

    printed = command(copy, out, "--min-chrf", 99.99)

    assert re.search(rf"^{out}: proven \(cpu-fp32 \d\.\d MB\)$", printed, re.MULTILINE)
    manifest = open_bundle(out).manifest
    assert manifest.variants.keys() == manifest.golden.outputs.keys() == manifest.quality.keys() == {"cpu-fp32"}
    assert "int8_rows_apart" not in manifest.parity
    assert not (out / "cpu-int8").exists()
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert warning.startswith("warning: the bundle is written without cpu-int8: cpu-int8 reaches chrF ")
    assert "calibrate with 200 sentences of the kind that the model will translate (--text)" in warning


def test_int8_alone_that_is_too_far_from_float_leaves_nothing(command: Command, tmp_path: Path, copy: Path) -> None:
    out = tmp_path / "out" / "bundle"

    code, message = command.fails(copy, out, "--min-chrf", 99.99, "--variants", "cpu-int8")

    assert code == 1
    assert "bundle was not written: " in message
    assert "reaches chrF" in message
    assert not list(out.parent.iterdir())


@pytest.mark.skipif(importlib.util.find_spec("transformers") is not None, reason="transformers is installed")
def test_a_check_that_cannot_be_made_is_refused_before_the_work(command: Command, tmp_path: Path) -> None:
    code, message = command.fails(TINY, tmp_path / "bundle", "--check")

    assert code == 2
    assert "--check needs transformers" in message
    assert not list(tmp_path.iterdir())


def test_a_check_of_what_is_not_written_is_refused(command: Command, tmp_path: Path) -> None:
    code, message = command.fails(TINY, tmp_path / "bundle", "--check", "--variants", "cpu-int8")

    assert code == 2
    assert "--check compares cpu-fp32, which --variants leaves out" in message


def test_everything_that_is_wrong_is_said_at_once(command: Command, tmp_path: Path, copy: Path) -> None:
    change(copy / "config.json", normalize_before=True, rotary_theta=1e4, d_model=50, eos_token_id=0)
    change(copy / "generation_config.json", no_repeat_ngram_size=3, forced_eos_token_id=None)

    code, message = command.fails(copy, tmp_path / "bundle")

    assert code == 2
    lines = message.splitlines()
    assert lines[0].endswith("cannot be imported:")
    for expected in ("config.json: normalize_before: True; expected False", "d_model is 50", "vocab.json: id 0"):
        assert any(expected in line for line in lines), expected
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("rotary_theta", 1e4, "config.json: rotary_theta: 10000.0; expected nothing that is not known here"),
        ("activation_function", "tanh", "config.json: activation_function: 'tanh'; expected relu or"),
        ("num_beams", None, None),
        ("decoder_layers", 3, "model.decoder.layers.2.fc1.weight: missing; expected a tensor of shape"),
        ("encoder_layers", 0, "config.json: encoder_layers: 0; expected a whole number from 1 to 256"),
        ("decoder_ffn_dim", 81, "found"),
        ("quantization_config", {"bits": 4}, "quantization_config"),
        ("model_type", "nllb-moe", "config.json: model_type: nllb-moe; a mixture of experts is not supported"),
        ("model_type", "t5", "config.json: model_type: t5; relative positions are not supported"),
        ("model_type", "bert", "config.json: model_type: bert; expected one of marian, fsmt, m2m_100, mbart"),
    ],
)
def test_settings_that_matter_are_believed_or_refused(
    command: Command, copy: Path, key: str, value: object, expected: str | None
) -> None:
    change(copy / "config.json", **{key: value})

    if expected is None:
        assert "OPUS-MT" in command(copy, "--dry-run")
        return
    code, message = command.fails(copy, "--dry-run")

    assert code == 2
    assert expected in message or (expected == "found" and "shape [80]; expected [81]" in message)


def test_what_the_user_allows_is_no_fault(command: Command, copy: Path) -> None:
    change(copy / "config.json", rotary_theta=1e4)

    assert "OPUS-MT" in command(copy, "--dry-run", "--allow", "rotary_theta")


@pytest.mark.parametrize("file", ["model.safetensors", "source.spm", "vocab.json", "config.json", "target.spm"])
@pytest.mark.parametrize("content", [None, b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"])
def test_a_file_that_is_missing_or_only_a_pointer_is_named(
    command: Command, copy: Path, file: str, content: bytes | None
) -> None:
    (copy / file).unlink()
    if content is not None:
        (copy / file).write_bytes(content)

    code, message = command.fails(copy, "--dry-run")

    assert code == 2
    assert file in message
    assert "Traceback" not in message


@pytest.mark.parametrize("name", ["notes.txt", "config.yml", "model.npz", "model.bin", "x.argosmodel", "decoder.yml"])
def test_a_directory_of_junk_gets_one_clear_report(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(bytes(range(256)))

    code, message = command.fails(tmp_path, "--dry-run")

    assert code == 2
    assert 2 <= len(message.splitlines()) <= 5
    assert "Traceback" not in message


@pytest.mark.parametrize("name", ["", "missing"])
def test_nothing_is_no_model(command: Command, tmp_path: Path, name: str) -> None:
    code, message = command.fails(tmp_path / name, "--dry-run")

    assert code == 2
    assert ("an empty directory" if not name else "does not exist") in message


def test_an_archive_is_called_by_its_own_name(command: Command, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "empty.argosmodel", "w"):
        pass
    archive = shutil.make_archive(str(tmp_path / "opus-mt-en-de"), "zip", TINY)

    code, message = command.fails(tmp_path / "empty.argosmodel", "--dry-run")

    assert code == 2
    assert "\nempty: an empty directory; " in message
    assert command(archive, "--dry-run").startswith("OPUS-MT (Hugging Face Marian): opus-mt-en-de\n")


def test_weights_of_torch_are_read_too(command: Command, copy: Path) -> None:
    torch.save({"model.shared.weight": torch.ones(518, 48)}, copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()

    code, message = command.fails(copy, "--dry-run")

    assert code == 2
    assert "pytorch_model.bin: model.encoder.layers.0.fc1.weight: missing" in message


def test_an_existing_directory_is_never_touched(command: Command, tmp_path: Path) -> None:
    code, message = command.fails(TINY, tmp_path)

    assert (code, "exists already" in message) == (2, True)


def test_where_to_write_must_be_said(command: Command) -> None:
    code, message = command.fails(TINY)

    assert code == 2
    assert "say where the bundle is to be made, or --dry-run" in message


def test_two_dashes_are_no_value_of_a_flag(command: Command) -> None:
    code, message = command.fails(TINY, "--dry-run", "--min-chrf=--")

    assert code == 2
    assert "min-chrf: " in message
