"""What spoils a model: functions that return what changes the files of a directory."""

import json
import os
import pickle
import struct
import zipfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.chaos.import_models import pack
from tests.expanding import expanding
from tests.export.imports.families.test_marian import SETTINGS, SSRU, tensors
from tests.export.imports.writers import write_marian

Spoil = Callable[[Path], Any]  # the result: arguments of the command, or None for the directory
Made = dict[str, tuple[Callable[[], Spoil], str]]  # by its name: what makes what spoils a model, and what is said
FORGED = "x\n/models/out: proven (cpu-fp32 1.0 MB)\x1b]0;owned\x07\x1b[2J\u202e"
_HUGE = 1 << 40  # bytes that a file claims
_MATRIX = "model.encoder.layers.0.fc1.weight"
_PICKLE = "pytorch_model.bin"


def written(file: str, content: bytes) -> Spoil:
    """Returns what writes a file."""

    def spoil(directory: Path) -> None:
        (directory / file).write_bytes(content)

    return spoil


def damaged(file: str, how: str) -> Spoil:
    """Returns what becomes of a download: one of "half", "empty", "hollow", "zeros", "flipped"."""

    def spoil(directory: Path) -> None:
        path = directory / file
        size = path.stat().st_size
        if how in ("zeros", "flipped"):
            data = bytearray(path.read_bytes())
            part = slice(None) if how == "zeros" else slice(0, size // 8, 7)
            data[part] = bytes(len(data[part])) if how == "zeros" else bytes(each ^ 0x55 for each in data[part])
            path.write_bytes(data)
        else:
            os.truncate(path, {"half": size // 2, "empty": 0, "hollow": _HUGE}[how])

    return spoil


def changed(file: str, **changes: Any) -> Spoil:
    """Returns what changes keys of a JSON file."""

    def spoil(directory: Path) -> None:
        values = json.loads((directory / file).read_text(encoding="utf-8"))
        (directory / file).write_text(json.dumps({**values, **changes}), encoding="utf-8")

    return spoil


def expanded(file: str, spec: str = "normalizer_spec") -> Spoil:
    """Returns what has a SentencePiece model write 2 MB in place of a letter."""

    def spoil(directory: Path) -> None:
        (directory / file).write_bytes(expanding(2_000_000, (directory / file).read_bytes(), spec))

    return spoil


def replaced(file: str, old: bytes, new: bytes) -> Spoil:
    """Returns what replaces bytes of a file."""

    def spoil(directory: Path) -> None:
        data = (directory / file).read_bytes()
        assert old in data, old
        (directory / file).write_bytes(data.replace(old, new, 1))

    return spoil


def header(entries: Any, data: bytes = b"") -> Spoil:
    """Returns what writes a safetensors file."""
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return written("model.safetensors", struct.pack("<Q", len(text)) + text + data)


def sharded(directory: Path) -> None:
    """Gives a file of 30,000 tensors 1000 names, each of which takes as long to read as the first."""
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    header({f"a{i}": entry for i in range(30_000)}, bytes(4))(directory)
    (directory / "model.safetensors").rename(directory / "first")
    for number in range(1000):
        (directory / str(number)).symlink_to("first")
    index = {"weight_map": {f"a{number}": str(number) for number in range(1000)}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def overlapping(directory: Path) -> None:
    """Makes a network of 256 layers, all of them the same bytes."""
    settings = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    width, hidden = 512, 4096
    changes = {"d_model": width, "decoder_layers": 256, "decoder_ffn_dim": hidden, "decoder_attention_heads": 8}
    changes |= {"encoder_ffn_dim": hidden, "encoder_attention_heads": 8}
    changed("config.json", **changes)(directory)
    shapes = {"model.shared.weight": [settings["vocab_size"], width], "final_logits_bias": [1, settings["vocab_size"]]}
    for side, layers in (("encoder", settings["encoder_layers"]), ("decoder", 256)):
        for layer in (f"model.{side}.layers.{i}" for i in range(layers)):
            attentions = ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",)
            for each in attentions:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes |= {f"{layer}.{each}.{part}.weight": [width, width], f"{layer}.{each}.{part}.bias": [width]}
            for norm in (*(f"{each}_layer_norm" for each in attentions), "final_layer_norm"):
                shapes |= {f"{layer}.{norm}.weight": [width], f"{layer}.{norm}.bias": [width]}
            shapes |= {f"{layer}.fc1.weight": [hidden, width], f"{layer}.fc1.bias": [hidden]}
            shapes |= {f"{layer}.fc2.weight": [width, hidden], f"{layer}.fc2.bias": [width]}
    entries = {}
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape))
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}
    header(entries, np.full(hidden * width, 0.01, np.float32).tobytes())(directory)


def weighted(value: float, dtype: torch.dtype = torch.float32) -> Spoil:
    """Returns what puts a number into a matrix of a pytorch_model.bin."""

    def spoil(directory: Path) -> None:
        weights = torch.load(directory / _PICKLE, weights_only=True)
        weights[_MATRIX] = weights[_MATRIX].to(dtype)
        weights[_MATRIX][1, 2] = value
        torch.save(weights, directory / _PICKLE)

    return spoil


def saved(value: Any, *, is_new: bool = True) -> Spoil:
    """Returns what puts a value in place of a matrix of a pytorch_model.bin."""

    def spoil(directory: Path) -> None:
        weights = {**torch.load(directory / _PICKLE, weights_only=True), _MATRIX: value}
        torch.save(weights, directory / _PICKLE, _use_new_zipfile_serialization=is_new)

    return spoil


def pickled(data: bytes) -> Spoil:
    """Returns what writes an archive of torch with that pickle."""

    def spoil(directory: Path) -> None:
        with zipfile.ZipFile(directory / _PICKLE, "w") as archive:
            for name, content in (("data.pkl", data), ("version", b"3\n"), ("byteorder", b"little")):
                archive.writestr(f"archive/{name}", content)

    return spoil


def legacy(data: bytes) -> Spoil:
    """Returns what writes a file of older versions of torch with that pickle."""
    head: tuple[Any, ...] = (0x1950A86A20F9469CFC6C, 1001, {})  # magic number, version, of which machine
    return written(_PICKLE, b"".join(pickle.dumps(each, 2) for each in head) + data)


def option(file: str, key: object, value: Any) -> Spoil:
    """Returns what sets an option of a checkpoint of fairseq or OpenNMT-py."""

    def spoil(directory: Path) -> None:
        with torch.serialization.safe_globals([Namespace]):
            document = torch.load(directory / file, weights_only=True)
        vars(document["args" if "args" in document else "opt"])[key] = value
        torch.save(document, directory / file)

    return spoil


def endless(*, is_doubled: bool) -> list[Any]:
    """Returns a list that contains itself, or 2^60 lists in 60."""
    found: list[Any] = []
    if not is_doubled:
        found.append(found)
    for _ in range(60 if is_doubled else 0):
        found = [found, found]
    return found


def arrays(**changes: Any) -> Spoil:
    """Returns what writes a model of Marian with other arrays; those of None are left out. `settings` are a text."""
    found = {**tensors(SETTINGS), **changes}
    if "settings" in changes:
        found["special:model.yml"] = np.frombuffer(found.pop("settings").encode(), np.int8)
    kept = {name: array for name, array in found.items() if array is not None}
    return lambda directory: np.savez_compressed(directory / "model.npz", **kept)


def entry(name: str, data: bytes) -> Spoil:
    """Returns what writes an .npz of one entry."""

    def spoil(directory: Path) -> None:
        with zipfile.ZipFile(directory / "model.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, data)

    return spoil


def packed(name: str = "", data: bytes = b"", mode: int = 0, damage: int | None = None) -> Spoil:
    """Returns what packs a package of Argos with one more entry, or by a method and with bytes in its middle lost."""

    def spoil(directory: Path) -> list[str]:
        path = pack(directory, zipfile.ZIP_DEFLATED if damage is None else damage)
        if damage is not None:
            content = bytearray(path.read_bytes())
            content[len(content) // 2 : len(content) // 2 + 64] = bytes(64)
            path.write_bytes(content)
        else:
            with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
                facts = zipfile.ZipInfo(name)
                facts.external_attr, facts.compress_type = mode << 16, zipfile.ZIP_DEFLATED
                archive.writestr(facts, data)
        return [str(path)]

    return spoil


def flagged(name: str, value: bytes) -> Spoil:
    """Returns what gives a number of a model.bin of CTranslate2 other bytes."""

    def spoil(directory: Path) -> None:
        data = bytearray((directory / "model.bin").read_bytes())
        at = data.index(name.encode() + b"\0") + len(name) + 1 + 1 + 1 + 4  # rank, type, size
        data[at : at + len(value)] = value
        (directory / "model.bin").write_bytes(data)

    return spoil


def multiplied(multiplier: float) -> Spoil:
    """Returns what writes a student of Marian whose embedding is of int8 with that multiplier."""
    found = tensors(SETTINGS + SSRU)
    return lambda directory: write_marian(directory / "model.ende.bin", found, {"Wemb": multiplier})


def told(*arguments: str) -> Spoil:
    """Returns what leaves a model as it is, and gives the command some arguments."""
    return lambda directory: [str(directory), *arguments]


def renamed(name: str) -> Spoil:
    """Returns what renames the directory."""
    return lambda directory: [str(directory.rename(directory.with_name(name)))]
