"""Bundles with faults, each of which must keep the server from starting."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class BadBundle:
    """A fault to put into a copy of a bundle.

    Attributes:
        name: What is wrong with it.
        spoil: Puts the fault into the bundle in this directory.
        mentions: Words that the server must write, such as the file's name.
    """

    name: str
    spoil: Callable[[Path], None]
    mentions: tuple[str, ...]


def _flip(name: str) -> Callable[[Path], None]:
    """Flips all bits of the byte in the middle of a file."""

    def spoil(bundle: Path) -> None:
        data = bytearray((bundle / name).read_bytes())
        data[len(data) // 2] ^= 0xFF
        (bundle / name).write_bytes(data)

    return spoil


def _truncate(name: str) -> Callable[[Path], None]:
    """Keeps the first half of a file."""

    def spoil(bundle: Path) -> None:
        data = (bundle / name).read_bytes()
        (bundle / name).write_bytes(data[: len(data) // 2])

    return spoil


def _remove(*names: str) -> Callable[[Path], None]:
    """Deletes files."""

    def spoil(bundle: Path) -> None:
        for name in names:
            (bundle / name).unlink()

    return spoil


def _set_revision(bundle: Path) -> None:
    """Says that a newer program wrote the bundle."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    manifest["revision"] = 999
    (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def bad_bundles(variant: str) -> list[BadBundle]:
    """Lists the faults.

    Args:
        variant: The variant that the server is told to serve; its files are spoilt.

    Returns:
        All of them, in the order in which they are tried.
    """
    encoder, decoder, weights = (f"{variant}/{name}" for name in ("encoder.onnx", "decoder_step.onnx", "weights.bin"))
    rows: list[tuple[str, Callable[[Path], None], tuple[str, ...]]] = [
        ("a byte of encoder.onnx flipped", _flip(encoder), (encoder,)),
        ("encoder.onnx cut in half", _truncate(encoder), (encoder,)),
        ("a byte of weights.bin flipped", _flip(weights), (weights,)),
        ("decoder_step.onnx removed", _remove(decoder), (decoder,)),
        ("a byte of tokenizer.model flipped", _flip("tokenizer.model"), ("tokenizer.model",)),
        ("three files removed", _remove(encoder, decoder, "tokenizer.model"), (encoder, decoder, "tokenizer.model")),
        ("manifest.json cut in half", _truncate("manifest.json"), ("manifest.json",)),
        ("manifest.json removed", _remove("manifest.json"), ("manifest.json",)),
        ("revision 999", _set_revision, ("revision", "999")),
        ("no directory", shutil.rmtree, ("bundle",)),
    ]
    return [BadBundle(name=name, spoil=spoil, mentions=words) for name, spoil, words in rows]
