"""Checkpoints that come back from the bundles that were exported from them."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from export.files import write_variant
from export.probe_bundle import write_manifest
from export.restore import main, read_checkpoint, restore_checkpoint
from export.states import states_of
from export.subject import weights_hash
from export.verify import VerificationError
from model.checkpoint import Checkpoint, load_checkpoint
from model.transformer import Transformer
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.files import describe_file
from server.bundle.manifest import TOKENIZER_FILE
from tests.acceptance.server_process import BUILTIN_BUNDLE


def exported(weights: dict[str, torch.Tensor], model: Transformer, like: Bundle, directory: Path) -> Path:
    """Writes cpu-fp32 of a network with these weights, and says of it what the export says of a checkpoint."""
    model.load_state_dict({name: weight.float() for name, weight in weights.items()})
    variant = write_variant(model, directory, "cpu-fp32", [], [])
    (directory / TOKENIZER_FILE).write_bytes(b"tokens")
    recipe = {"model": dataclasses.asdict(model.config)}
    manifest = dataclasses.replace(
        like.manifest,
        variants={"cpu-fp32": variant},
        alignment=None,
        states=states_of(model.config),
        tokenizer=describe_file(directory / TOKENIZER_FILE),
        training={"name": "random", "recipe": recipe, "weights_sha256": weights_hash(weights)},
    )
    write_manifest(directory, manifest)
    return directory


@pytest.fixture
def changed(tiny_bundle: Bundle, tmp_path: Path) -> Bundle:
    """The tiny bundle, for a test to change."""
    shutil.copytree(tiny_bundle.directory, tmp_path / "changed")
    return dataclasses.replace(tiny_bundle, directory=tmp_path / "changed")


def assert_same_weights(found: Checkpoint, expected: dict[str, torch.Tensor]) -> None:
    assert found.weights.keys() == expected.keys()
    assert all(torch.equal(found.weights[name], weight) for name, weight in expected.items())
    assert {weight.dtype for weight in found.weights.values()} == {weight.dtype for weight in expected.values()}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_network_of_any_shape_comes_back(
    model: Transformer, dtype: torch.dtype, tiny_bundle: Bundle, tmp_path: Path
) -> None:
    weights = {name: weight.to(dtype) for name, weight in model.state_dict().items()}

    restored = restore_checkpoint(exported(weights, model, tiny_bundle, tmp_path))

    assert restored.config == model.config
    assert_same_weights(restored, weights)
    assert restored.tokenizer == b"tokens"
    assert restored.facts["name"] == "random"


def test_the_command_writes_the_checkpoint_as_it_was(
    tiny_checkpoint: Checkpoint, tiny_bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "tiny.pt"
    monkeypatch.setattr(sys, "argv", ["restore", str(tiny_bundle.directory), str(path)])

    main()

    restored = load_checkpoint(path)
    assert restored.config == tiny_checkpoint.config
    assert restored.tokenizer == tiny_checkpoint.tokenizer
    assert restored.facts == json.loads(json.dumps(tiny_checkpoint.facts))
    assert_same_weights(restored, tiny_checkpoint.weights)


def test_a_checkpoint_is_read_from_its_file_or_from_a_bundle(tiny_checkpoint: Checkpoint, tiny_bundle: Bundle) -> None:
    file = Path(__file__).parents[1] / "data" / "tiny.pt"

    for path in (file, tiny_bundle.directory):
        assert_same_weights(read_checkpoint(path), tiny_checkpoint.weights)


@pytest.mark.parametrize("name", ["en-de", "de-en"])
def test_the_built_in_bundles_have_their_checkpoints(name: str) -> None:
    directory = BUILTIN_BUNDLE.with_name(name)

    restored = restore_checkpoint(directory)

    assert restored.facts["name"] == f"{name}-small"
    assert weights_hash(restored.weights) == open_bundle(directory, "cpu-fp32").manifest.training["weights_sha256"]


@pytest.mark.parametrize(
    ("training", "error", "message"),
    [
        ({"weights_sha256": "0" * 64}, VerificationError, "has other weights than the checkpoint"),
        ({"weights_sha256": None}, ValueError, "was not exported from a checkpoint"),
        ({"recipe": None}, ValueError, "was not exported from a checkpoint"),
        ({"recipe": {"model": {"depth": 3}}}, ValueError, "is of a version whose networks were others: .*'depth'"),
        ({"recipe": {}}, ValueError, "is of a version whose networks were others: 'model'"),
        (
            {"recipe": {"model": {"vocab_size": 1 << 20, "d_model": 1 << 20}}},
            ValueError,
            r"has \d+ bytes, and the network of its recipe \d{15}$",
        ),
    ],
)
def test_what_has_no_checkpoint_is_refused(
    changed: Bundle, training: dict[str, Any], error: type[Exception], message: str
) -> None:
    facts = {name: fact for name, fact in {**changed.manifest.training, **training}.items() if fact is not None}
    write_manifest(changed.directory, dataclasses.replace(changed.manifest, training=facts))

    with pytest.raises(error, match=message):
        restore_checkpoint(changed.directory)


def test_a_file_that_exists_is_never_touched(
    tiny_bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.pt").write_text("precious", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["restore", str(tiny_bundle.directory), str(tmp_path / "mine.pt")])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert "mine.pt exists already" in capsys.readouterr().err
    assert (tmp_path / "mine.pt").read_text(encoding="utf-8") == "precious"


def test_a_folder_that_is_no_bundle_is_said_to_be_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["restore", str(tmp_path), str(tmp_path / "mine.pt")])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"export.restore: {tmp_path}")
    assert not list(tmp_path.iterdir())


def test_a_network_that_writes_all_words_at_once_comes_back(
    one_pass_checkpoint: Checkpoint, one_pass_bundle: Bundle
) -> None:
    restored = restore_checkpoint(one_pass_bundle.directory)

    assert restored.config == one_pass_checkpoint.config
    assert_same_weights(restored, one_pass_checkpoint.weights)
