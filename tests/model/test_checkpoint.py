import dataclasses
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from model.checkpoint import Checkpoint, average_weights, load_checkpoint, save_checkpoint
from model.config import TransformerConfig
from model.one_pass import OnePass
from model.transformer import Transformer
from tests.expanding import expanding, small_model

CONFIG = TransformerConfig(vocab_size=20, d_model=16, num_heads=2, encoder_layers=1, decoder_layers=1, ffn_dim=8)


def make(seed: int = 0) -> Checkpoint:
    torch.manual_seed(seed)
    weights = Transformer(CONFIG).state_dict()
    return Checkpoint(config=CONFIG, weights=weights, tokenizer=small_model(), facts={"name": "x", "steps": 3})


def document(**changes: Any) -> dict[str, Any]:
    whole = {"format": 1, "config": dataclasses.asdict(CONFIG), "weights": {}, "tokenizer": b"x", "facts": {}}
    return {name: value for name, value in {**whole, **changes}.items() if value is not None}


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    checkpoint = make()

    save_checkpoint(tmp_path / "a.pt", checkpoint)
    loaded = load_checkpoint(tmp_path / "a.pt")

    assert (loaded.config, loaded.tokenizer, loaded.facts) == (CONFIG, checkpoint.tokenizer, checkpoint.facts)
    assert loaded.weights.keys() == checkpoint.weights.keys()
    assert all(torch.equal(weight, checkpoint.weights[name]) for name, weight in loaded.weights.items())


def test_a_model_of_half_precision_weights_is_float32_and_evaluates() -> None:
    checkpoint = make()
    half = {name: weight.half() for name, weight in checkpoint.weights.items()}

    model = dataclasses.replace(checkpoint, weights=half).build_model()

    assert not model.training
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_checkpoint_finds_its_family_and_is_no_model_of_another(tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, family="one_pass")
    weights = OnePass(config).state_dict()
    save_checkpoint(tmp_path / "a.pt", Checkpoint(config=config, weights=weights, tokenizer=small_model()))

    loaded = load_checkpoint(tmp_path / "a.pt")

    assert isinstance(loaded.build_network(), OnePass)
    assert isinstance(make().build_network(), Transformer)
    with pytest.raises(ValueError, match='of the family "one_pass", not "transformer"'):
        loaded.build_model()


@pytest.mark.parametrize("content", [b"", b"some text", b"\x80\x02garbage", b"PK\x03\x04 no zip"])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.pt").write_bytes(content)

    with pytest.raises(ValueError, match=r"a\.pt is not a babelserve checkpoint"):
        load_checkpoint(tmp_path / "a.pt")


@pytest.mark.parametrize(
    "foreign",
    [
        torch.zeros(2),
        [1, 2],
        {"model": {}},
        document(weights=None),
        document(facts=None),
        document(config={"vocab_size": 20, "rotary": True}),
        document(config=None),
    ],
    ids=["tensor", "list", "dict", "no weights", "no facts", "unknown option", "no config"],
)
def test_another_torch_file_is_refused(tmp_path: Path, foreign: object) -> None:
    torch.save(foreign, tmp_path / "a.pt")

    with pytest.raises(ValueError, match=r"a\.pt is not a babelserve checkpoint"):
        load_checkpoint(tmp_path / "a.pt")


def doubled() -> list[Any]:
    found: list[Any] = []
    for _ in range(60):
        found = [found, found]
    return found


WIDE = dataclasses.replace(CONFIG, d_model=128)


def of_one_storage() -> dict[str, torch.Tensor]:
    """Returns weights that are all the same numbers, so that their file is smaller than the network."""
    numbers = torch.ones(50_000)
    return {name: numbers[: each.numel()].view(each.shape) for name, each in Transformer(WIDE).state_dict().items()}


EMBEDDING = "embedding.tokens.weight"
# What is changed of a checkpoint, and what is told of it.
HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "facts without end": ({"facts": {"x": doubled()}}, "its facts have more than 262144 characters as JSON"),
    "a tensor as a fact": ({"facts": {"x": torch.ones(2)}}, "Object of type Tensor is not JSON"),
    "a long fact": ({"facts": {"x": "y" * 270_000}}, "its facts have more than 262144 characters as JSON"),
    "NaN as a fact": ({"facts": {"x": math.nan}}, "Out of range float values"),
    "half a character": ({"facts": {"x": "\ud800"}}, "surrogates not allowed"),
    "no vocabulary": ({"tokenizer": b"text"}, "is no SentencePiece model"),
    "a vocabulary that expands": ({"tokenizer": expanding(65)}, "writes 65 bytes in place of a character"),
    "a fraction as a size": ({"config": dataclasses.asdict(CONFIG) | {"d_model": 16.0}}, "d_model must be in 1"),
    "a truth as a size": ({"config": dataclasses.asdict(CONFIG) | {"encoder_layers": True}}, "encoder_layers must be"),
    "a fraction as an id": ({"config": dataclasses.asdict(CONFIG) | {"pad_id": 0.0}}, "pad_id must be in 0"),
    "one number as many": (
        {"weights": {EMBEDDING: torch.ones(1).expand(2**40)}},
        r"its weights take \d+ bytes, and it has \d+",
    ),
    "the same numbers again and again": (
        {"config": dataclasses.asdict(WIDE), "weights": of_one_storage()},
        r"its weights take \d+ bytes, and it has \d+",
    ),
    "other numbers": (
        {"weights": {EMBEDDING: torch.ones(20, 16).bfloat16()}},
        f"'{EMBEDDING}' has NaN or infinity, or is no",
    ),
    "another shape": (
        {"weights": {EMBEDDING: torch.ones(16, 20)}},
        rf"'{EMBEDDING}' is \[16, 20\], and must be \[20, 16\]",
    ),
    "one weight more": ({"weights": {"x\x1b": torch.ones(1)}}, r"'x\\x1b' is \[1\], and must be nothing"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_does_not_fit_together_is_refused(tmp_path: Path, name: str) -> None:
    changes, fault = HOSTILE[name]
    weights = make().weights | changes.get("weights", {})
    torch.save(document(tokenizer=small_model()) | changes | {"weights": weights}, tmp_path / "a.pt")

    with pytest.raises(ValueError, match=rf"a\.pt .*{fault}"):
        load_checkpoint(tmp_path / "a.pt")


def test_a_packed_archive_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", make())
    with zipfile.ZipFile(tmp_path / "a.pt") as plain, zipfile.ZipFile(tmp_path / "b.pt", "w", 8) as packed:
        for each in plain.infolist():
            packed.writestr(each.filename, plain.read(each))

    with pytest.raises(ValueError, match=r"b\.pt is not a babelserve checkpoint: '.*' is packed"):
        load_checkpoint(tmp_path / "b.pt")


def test_an_archive_of_a_damaged_directory_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", make())
    content = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "a.pt").write_bytes(content.replace(b"PK\1\2", b"PK\1\3"))

    with pytest.raises(ValueError, match=r"a\.pt is not a babelserve checkpoint: Bad magic number"):
        load_checkpoint(tmp_path / "a.pt")


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", make())
    content = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "a.pt").write_bytes(content[: len(content) // 2])

    with pytest.raises(ValueError, match=r"a\.pt is not a babelserve checkpoint"):
        load_checkpoint(tmp_path / "a.pt")


def test_another_format_is_named(tmp_path: Path) -> None:
    torch.save(document(format=7), tmp_path / "a.pt")

    with pytest.raises(ValueError, match="has checkpoint format 7; this version reads 1"):
        load_checkpoint(tmp_path / "a.pt")


class _Dangerous:
    """Makes a directory when it is unpickled without care."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_code_in_a_file_is_refused_and_not_run(tmp_path: Path) -> None:
    torch.save(document(facts={"x": _Dangerous(tmp_path / "made")}), tmp_path / "a.pt")

    with pytest.raises(ValueError, match="is not a babelserve checkpoint"):
        load_checkpoint(tmp_path / "a.pt")

    assert not (tmp_path / "made").exists()


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "none.pt")


def test_a_save_that_fails_leaves_the_old_file_whole(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", make())
    before = (tmp_path / "a.pt").read_bytes()
    unsavable = dataclasses.replace(make(1), facts={"x": lambda: None})

    with pytest.raises(Exception, match="pickle"):
        save_checkpoint(tmp_path / "a.pt", unsavable)

    assert (tmp_path / "a.pt").read_bytes() == before


def test_a_save_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", make())
    save_checkpoint(tmp_path / "a.pt", make(1))

    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]
    assert torch.equal(
        load_checkpoint(tmp_path / "a.pt").weights["embedding.tokens.weight"],
        make(1).weights["embedding.tokens.weight"],
    )


def test_the_average_is_the_mean_of_each_weight(tmp_path: Path) -> None:
    checkpoints = [make(seed) for seed in range(3)]
    paths = [tmp_path / f"{i}.pt" for i in range(3)]
    for path, checkpoint in zip(paths, checkpoints, strict=True):
        save_checkpoint(path, checkpoint)

    average = average_weights(paths)

    for name, weight in average.items():
        expected = sum(checkpoint.weights[name] for checkpoint in checkpoints) / 3
        torch.testing.assert_close(weight, expected)
        assert weight.dtype == torch.float32
    one = average_weights(paths[:1])
    assert all(torch.equal(weight, checkpoints[0].weights[name]) for name, weight in one.items())
