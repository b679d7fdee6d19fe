"""Hostile recipes, corpora and folders: each ends the command with lines that name the file, and no traceback."""

import dataclasses
import gzip
import os
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from model.checkpoint import save_checkpoint
from model.train import main, prepare
from tests.model.runs import DATA, SMALL_RECIPE, recipe, small_data

RECIPE = SMALL_RECIPE.format(training="")
TRAIN = "multi30k_val_200.en.txt"
LINE_LIMIT = "must have at most 1048576 bytes"


def changed(old: str, new: str) -> str:
    assert old in RECIPE
    return RECIPE.replace(old, new, 1)


def training(line: str) -> str:
    return SMALL_RECIPE.format(training=line)


def corpus(line: str) -> str:
    return changed('target = "multi30k_val_200.de.txt"\n', f'target = "multi30k_val_200.de.txt"\n{line}\n')


# The content of recipe.toml, and what is told of it.
RECIPES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "the recipe: name is missing"),
    "arrays in each other": ("a = " + "[" * 9999 + "]" * 9999, "too deep in each other"),
    "tables in each other": ("a = " + "{b = " * 9999 + "1" + "}" * 9999, "too deep in each other"),
    "a key of many parts": (f"{'.'.join('a' * 99_999)} = 1", "line 1: must have at most 200 dots, not 99998"),
    "tables as deep as dots reach": (
        changed("d_model = 16", f"d_model{'.a' * 150} = 1"),
        r"\[model\]: d_model must be",
    ),
    "latin-1": (RECIPE.replace("small", "klein-groß").encode("latin-1"), "line 2: is not UTF-8"),
    "utf-16": (RECIPE.encode("utf-16"), "line 1: is not UTF-8"),
    "zeros": (bytes(99), "Invalid statement.*line 1"),
    "too large": ("#" * (1 << 18) + "\n", "must have at most 262144 bytes"),
    "a key twice": (f"name = 'a'\n{RECIPE}", r"Cannot overwrite a value \(at line 3"),
    "a number of 5000 digits": (training(f"seed = {'1' * 5000}"), "Exceeds the limit"),
    "a hexadecimal number of 5000 digits": (
        training(f"seed = 0x{'f' * 5000}"),
        r"\[training\]: seed must be a number of",
    ),
    "such a number as a text": (
        changed('name = "small"', f"name = 0x{'f' * 5000}"),
        "name must be a text, not such a int",
    ),
    "seed over 64 bits": (training("seed = 18446744073709551616"), r"\[training\]: seed must be a number of 64 bits"),
    "weight 1e18": (corpus("weight = 1e18"), r"\[\[train\]\] 1: weight must be in \[0, 1000\], not 1e\+18"),
    "weight -1": (corpus("weight = -1"), r"\[\[train\]\] 1: weight must be in \[0, 1000\], not -1"),
    "weight nan": (corpus("weight = nan"), r"\[\[train\]\] 1: weight must be finite, not nan"),
    "weight inf": (corpus("weight = inf"), r"\[\[train\]\] 1: weight must be finite, not inf"),
    "hold_out -1": (corpus("hold_out = -1"), r"\[\[train\]\] 1: hold_out must be in 0\.\.1000000000, not -1"),
    "hold_out all": (corpus("hold_out = 999"), "no pair that is not held out"),
    "hold_out of the dev set": (f"{RECIPE}hold_out = 1", r"\[\[dev\]\] hold_out must be 0"),
    "limit true": (corpus("limit = true"), "limit must be a whole number, not True"),
    "lr_scale nan": (training("lr_scale = nan"), "lr_scale must be finite, not nan"),
    "lr_scale inf": (training("lr_scale = inf"), "lr_scale must be finite, not inf"),
    "lr_scale 1e30": (training("lr_scale = 1e30"), r"lr_scale must be over 0 and at most 1000, not 1e\+30"),
    "steps without end": (
        changed("max_steps = 1000", "max_steps = 1000000000000"),
        r"max_steps must be in 1\.\.1000000000",
    ),
    "batches without end": (
        changed("batch_tokens = 4000", "batch_tokens = 9e18"),
        "batch_tokens must be a whole number",
    ),
    "accumulate 0": (training("accumulate = 0"), r"accumulate must be in 1\.\.1000000000, not 0"),
    "copy nan": (f"{RECIPE}[augmentation]\ncopy = nan", r"\[augmentation\]: copy must be finite"),
    "vocabulary without end": (changed("= 700", "= 2147483647"), r"vocab_size must be in 1\.\.1048576, not 2147483647"),
    "vocabulary over the text": (changed("= 700", "= 1000000"), "vocab_size must be at most"),
    "layers without end": (changed("encoder_layers = 1", "encoder_layers = 999999999"), "encoder_layers must be in 1"),
    "a network over the memory": (
        changed("d_model = 16", "d_model = 65536").replace("ffn_dim = 32", "ffn_dim = 1048576"),
        r"\[model\] is a network of \d+ million weights, whose training takes \d+ GB of memory",
    ),
    "the same file twice": (changed("multi30k_val_200.de.txt", TRAIN), "source and target must be two files"),
    "NUL in a name": (changed("dev.en", r"dev\u0000en"), r"\[\[dev\]\] 1: source must be printable, not 'dev\\x00en'"),
    "an escape in a name": (changed("dev.en", r"dev\u001b[2J"), r"source must be printable, not 'dev\\x1b\[2J'"),
    "an escape in a key": (f'"a\\u001b[2J\\nproven" = 1\n{RECIPE}', r"unknown name: 'a\\x1b\[2J\\nproven'"),
    "a name that is too long": (changed("dev.en", "d" * 5000), "File name too long"),
    "no such file": (changed("dev.en", "none.en"), "No such file or directory: .*none.en"),
    "a faulty corpus, and words that need one": (
        corpus("weight = -1") + "[augmentation]\ninterchange = 0.1",
        r"\[\[train\]\] 1: weight must be",
    ),
    "a variant of a folder": ('name = "x"\nvariant_of = ""', "Is a directory"),
    "a variant of itself": ('name = "x"\nvariant_of = "recipe.toml"', "is not itself one with variant_of"),
    "a variant with NUL": ('name = "x"\nvariant_of = "a\\u0000"', r"variant_of must be printable, not 'a\\x00'"),
    "a thousand faults": (f"train = [{'1, ' * 1000}]", "and 9[0-9]{2} more$"),
}


def put(name: str, content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)

    return write


def make(name: str, what: Callable[[Path], Any]) -> Callable[[Path], None]:
    def replace(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        what(folder / name)

    return replace


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 36)


def zipped(folder: Path, content: bytes, name: str = TRAIN) -> None:
    (folder / "data" / f"{name}.gz").write_bytes(content)
    (folder / "recipe.toml").write_text(RECIPE.replace(name, f"{name}.gz"))


def data_file(folder: Path) -> None:
    (folder / "data").rename(folder / "text")
    (folder / "data").touch()


def list_state(folder: Path) -> None:
    (folder / "out").mkdir()
    torch.save([1], folder / "out" / "state.pt")


def packed_state(folder: Path) -> None:
    (folder / "out").mkdir()
    with zipfile.ZipFile(folder / "out" / "state.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(99))


def with_state(**changes: object) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        trainer = prepare(recipe(), DATA, folder / "out")
        trainer.save_state()
        state = torch.load(folder / "out" / "state.pt") | changes
        torch.save(state, folder / "out" / "state.pt")

    return write


def with_pretrained(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        trainer = prepare(recipe(), DATA, folder / "first")
        checkpoint = trainer._checkpoint(trainer.model.state_dict(), 0.0)
        weights = {name: change(weight) for name, weight in checkpoint.weights.items()}
        save_checkpoint(folder / "pretrained.pt", dataclasses.replace(checkpoint, weights=weights))

    return write


# What is done to the folder, and what is told of it.
FOLDERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "recipe: FIFO": (make("recipe.toml", os.mkfifo), r"recipe\.toml is not a regular file"),
    "recipe: folder": (make("recipe.toml", Path.mkdir), r"Is a directory: .*recipe\.toml"),
    "recipe: device": (make("recipe.toml", lambda p: p.symlink_to("/dev/zero")), r"recipe\.toml is not a regular file"),
    "recipe: sparse": (make("recipe.toml", sparse), r"recipe\.toml: must have at most 262144 bytes"),
    "corpus: FIFO": (make(f"data/{TRAIN}", os.mkfifo), rf"{TRAIN} is not a regular file"),
    "corpus: folder": (make(f"data/{TRAIN}", Path.mkdir), rf"Is a directory: .*{TRAIN}"),
    "corpus: loop": (make(f"data/{TRAIN}", lambda path: path.symlink_to(path)), f"symbolic links: .*{TRAIN}"),
    "corpus: sparse": (make(f"data/{TRAIN}", sparse), rf"{TRAIN}, line 1: {LINE_LIMIT}"),
    "corpus: empty": (put(f"data/{TRAIN}", b""), f"{TRAIN} has 0 lines, .* has 200"),
    "dev: empty": (
        lambda folder: [put(f"data/dev.{each}", b"")(folder) for each in ("en", "de")],
        "dev.en: none of its 0",
    ),
    "corpus: one line": (put(f"data/{TRAIN}", b"a\n" + b"x" * (1 << 21)), rf"{TRAIN}, line 2: {LINE_LIMIT}"),
    "corpus: utf-16": (put("data/dev.en", "A dog.\n".encode("utf-16")), "dev.en"),
    "corpus: latin-1": (
        put("data/dev.de", "Ein Mädchen.\n".encode("latin-1")),
        "dev.en: none of its 1 lines has text in",
    ),
    "gzip: plain": (lambda folder: zipped(folder, b"A dog.\n" * 200), rf"{TRAIN}\.gz is damaged: Not a gzipped file"),
    "gzip: cut": (
        lambda folder: zipped(folder, gzip.compress(b"A dog.\n" * 200)[:-9]),
        rf"{TRAIN}\.gz is damaged: Compressed file ended",
    ),
    "gzip: a bomb": (
        lambda folder: zipped(folder, gzip.compress(bytes(1 << 25))),
        rf"{TRAIN}\.gz, line 1: {LINE_LIMIT}",
    ),
    "data: file": (data_file, "no such folder"),
    "out: file": (put("out", b""), "File exists: .*out"),
    "out: state is text": (put("out/state.pt", b"text"), r"state\.pt is damaged"),
    "out: state is a FIFO": (make("out/state.pt", os.mkfifo), r"state\.pt is not a regular file"),
    "out: state is packed": (packed_state, r"state\.pt is damaged: '.*' is packed"),
    "out: state is a list": (list_state, r"state\.pt is damaged"),
    "out: state without weights": (with_state(model=None), r"state\.pt is of another model or optimizer"),
    "out: state of no progress": (with_state(progress={"step": "many"}), r"state\.pt is damaged: invalid literal"),
    "out: state of no recipe": (with_state(recipe={"model": 7, "training": 7}), r"model was 7, the recipe says"),
    "out: vocabulary is a FIFO": (make("out/tokenizer.model", os.mkfifo), r"tokenizer\.model is not a regular file"),
    "out: vocabulary is sparse": (make("out/tokenizer.model", sparse), r"tokenizer\.model: must have at most 67108864"),
    "out: vocabulary is text": (put("out/tokenizer.model", b"text"), r"tokenizer\.model: is no SentencePiece model"),
    "out: held-out.tsv is a folder": (make("out/held-out.tsv", Path.mkdir), r"held-out\.tsv cannot be written"),
    "out: lock is a folder": (make("out/lock", Path.mkdir), "Is a directory|lock cannot be locked"),
    "pretrained: FIFO": (make("pretrained.pt", os.mkfifo), r"pretrained\.pt is not a regular file"),
    "pretrained: NaN": (
        with_pretrained(lambda weight: weight / 0),
        r"pretrained\.pt is not .*: '.*' has NaN or infinity",
    ),
    "pretrained: shapes": (
        with_pretrained(lambda weight: weight[:1]),
        r"pretrained\.pt has not the weights of its network",
    ),
    "pretrained: no tensors": (with_pretrained(lambda _: 7), r"pretrained\.pt is not .*: '.*' has NaN"),
}


def told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the command, and returns what it says at its end. Whatever else it raises fails the test."""
    arguments = [folder / "recipe.toml", "--data", folder / "data", "--out", folder / "out"]
    if (folder / "pretrained.pt").exists():
        arguments += ["--pretrained", folder / "pretrained.pt"]
    monkeypatch.setattr(sys, "argv", ["babelserve-train", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main()
    assert isinstance(caught.value.code, str)
    assert len(caught.value.code) < 20_000
    return caught.value.code


@pytest.mark.parametrize("name", RECIPES)
def test_a_hostile_recipe_is_refused_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    content, fault = RECIPES[name]
    small_data(tmp_path)
    (tmp_path / "recipe.toml").write_bytes(content if isinstance(content, bytes) else content.encode())

    said = told(tmp_path, monkeypatch)

    assert re.search(fault, said)
    assert "recipe.toml" in said or fault in NAMED_OTHERWISE
    assert said.replace("\n", "").isprintable()


# These come out when the text is read, and name the key.
NAMED_OTHERWISE = {
    *("no pair that is not held out", "vocab_size must be at most", "File name too long", "Is a directory"),
    *(RECIPES["a network over the memory"][1], RECIPES["no such file"][1]),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_hostile_file_or_folder_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    change, fault = FOLDERS[name]
    small_data(tmp_path)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    change(tmp_path)

    assert re.search(fault, told(tmp_path, monkeypatch))
