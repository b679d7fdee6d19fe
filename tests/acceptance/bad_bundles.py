"""Bundles with faults, each of which must keep the server from starting, and `--check` from passing."""

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.bundle.files import describe_file
from server.bundle.manifest import seal_manifest
from server.bundle.variants import VARIANTS

_Row = tuple[str, Callable[[Path], None], tuple[str, ...]]  # of a `BadBundle`


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


def _truncate(name: str, percent: int = 50) -> Callable[[Path], None]:
    """Keeps the beginning of a file."""

    def spoil(bundle: Path) -> None:
        data = (bundle / name).read_bytes()
        (bundle / name).write_bytes(data[: len(data) * percent // 100])

    return spoil


def _remove(*names: str) -> Callable[[Path], None]:
    """Deletes files."""

    def spoil(bundle: Path) -> None:
        for name in names:
            (bundle / name).unlink()

    return spoil


def _change(**changes: Any) -> Callable[[Path], None]:
    """Changes fields of the manifest, those of objects one by one, and seals it again."""

    def spoil(bundle: Path) -> None:
        manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
        for name, value in changes.items():
            manifest[name] = {**manifest[name], **value} if isinstance(value, dict) else value
        (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        seal_manifest(bundle)

    return spoil


def _replace(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Puts something else in the place of a file."""

    def spoil(bundle: Path) -> None:
        (bundle / name).unlink()
        make(bundle / name)

    return spoil


def _describe_anew(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Changes a variant's file, and what the manifest says of it: only the content is wrong."""

    def spoil(bundle: Path) -> None:
        path = bundle / name
        path.write_bytes(change(path.read_bytes()))
        variants = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))["variants"]
        variants[path.parent.name]["files"][path.name] = dataclasses.asdict(describe_file(path))
        _change(variants=variants)(bundle)

    return spoil


def _exchange(other: str, *names: str) -> Callable[[Path], None]:
    """Puts another variant's files in the place of a variant's, and describes them anew."""

    def spoil(bundle: Path) -> None:
        for name in names:
            (bundle / name).write_bytes((bundle / other / Path(name).name).read_bytes())
            _describe_anew(name, bytes)(bundle)

    return spoil


def _nest(bundle: Path) -> None:
    """Makes the manifest 100,000 lists, each in another."""
    (bundle / "manifest.json").write_text("[" * 100_000 + "]" * 100_000, encoding="ascii")
    seal_manifest(bundle)


def _write_hole(size: int) -> Callable[[Path], None]:
    """Makes a file of a size that has nothing on disk."""

    def make(path: Path) -> None:
        path.touch()
        os.truncate(path, size)

    return make


def _declare_hole(name: str, size: int) -> Callable[[Path], None]:
    """Makes a file of the variant a hole that the manifest knows of."""

    def spoil(bundle: Path) -> None:
        _replace(name, _write_hole(size))(bundle)
        variants = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))["variants"]
        variant, file = name.split("/")
        variants[variant]["files"][file]["bytes"] = size
        _change(variants=variants)(bundle)

    return spoil


def bad_bundles(variant: str) -> list[BadBundle]:
    """Lists the faults.

    Args:
        variant: The variant that the server is told to serve; its files are spoilt.

    Returns:
        All of them, in the order in which they are tried.
    """
    encoder, decoder, weights = (f"{variant}/{name}" for name in ("encoder.onnx", "decoder_step.onnx", "weights.bin"))
    rows: list[_Row] = [
        ("a byte of encoder.onnx flipped", _flip(encoder), (encoder,)),
        ("encoder.onnx cut in half", _truncate(encoder), (encoder,)),
        ("a byte of weights.bin flipped", _flip(weights), (weights,)),
        ("decoder_step.onnx removed", _remove(decoder), (decoder,)),
        ("a byte of tokenizer.model flipped", _flip("tokenizer.model"), ("tokenizer.model",)),
        ("three files removed", _remove(encoder, decoder, "tokenizer.model"), (encoder, decoder, "tokenizer.model")),
        ("manifest.json cut in half", _truncate("manifest.json"), ("manifest.json",)),
        ("manifest.json removed", _remove("manifest.json"), ("manifest.json",)),
        ("revision 999", _change(revision=999), ("revision", "999")),
        ("no directory", shutil.rmtree, ("bundle",)),
    ]
    return [BadBundle(name=name, spoil=spoil, mentions=words) for name, spoil, words in rows]


def absurd_bundles(variant: str) -> list[BadBundle]:
    """Lists faults that are made to keep a reader busy, or to have it take what is not the bundle's.

    Args:
        variant: One on a CPU; its files are spoilt.

    Returns:
        All of them, in the order in which they are tried.
    """
    rows = [*_other_contents(variant), *_no_plain_files(f"{variant}/weights.bin"), *_absurd_manifests()]
    return [BadBundle(name=name, spoil=spoil, mentions=words) for name, spoil, words in rows]


def _other_contents(variant: str) -> list[_Row]:
    encoder, decoder, weights = (f"{variant}/{name}" for name in ("encoder.onnx", "decoder_step.onnx", "weights.bin"))
    manifest = "manifest.json"
    return [
        *(
            (f"weights.bin cut to {percent} %", _truncate(weights, percent), (weights, "the manifest says"))
            for percent in (0, 1, 50, 99)
        ),
        ("a byte of manifest.json flipped", _flip(manifest), (manifest, "sealed")),
        ("another sha256", _change(tokenizer={"sha256": "0" * 64}), ("tokenizer.model", "sha256")),
        (
            "other shapes",
            _change(dimensions={"num_heads": 8, "head_dim": 4}),
            ("decoder_step.onnx", "by the manifest"),
        ),
        ("a smaller vocabulary", _change(dimensions={"vocab_size": 60}), ("golden.source_ids", "0..59")),
        ("a larger vocabulary", _change(dimensions={"vocab_size": 800}), ("decoder_step.onnx", "[rows, 800]")),
        *(
            (
                f"{' and '.join(Path(name).name for name in names)} of {other}",
                _exchange(other, *names),
                (names[0], f"embedding is {VARIANTS[other].dtype}, by the manifest it is {VARIANTS[variant].dtype}"),
            )
            for names in ((encoder,), (decoder,), (encoder, decoder, weights))
            for other in VARIANTS
            if other != variant
        ),
        ("no ONNX", _describe_anew(encoder, lambda _: b"no graph"), (encoder, "no ONNX graph")),
        (
            "weights cut, as the manifest says",
            _describe_anew(weights, lambda data: data[:3]),
            (decoder, "behind the weights"),
        ),
        (
            "weights that are no numbers",
            _describe_anew(weights, lambda data: b"\xff" * len(data)),
            ("a step failed: FloatingPointError: log-probabilities that are not finite\n", "golden sentence"),
        ),
        (
            "weights outside",
            _describe_anew(encoder, lambda graph: graph.replace(b"weights.bin", b"../eights.b")),
            (encoder, "in another file"),
        ),
    ]


def _no_plain_files(weights: str) -> list[_Row]:
    manifest, hole = "manifest.json", 20 << 30
    return [
        ("weights that are a link out", _replace(weights, lambda path: path.symlink_to("/etc/passwd")), ("leads out",)),
        ("weights that are a FIFO", _replace(weights, os.mkfifo), (weights, "no regular file")),
        ("a manifest that is a FIFO", _replace(manifest, os.mkfifo), (manifest, "no regular file")),
        ("a seal that is a FIFO", _replace(f"{manifest}.sha256", os.mkfifo), (f"{manifest}.sha256", "no regular file")),
        ("a manifest that is a device", _replace(manifest, lambda path: path.symlink_to("/dev/zero")), ("leads out",)),
        ("a manifest that is a folder", _replace(manifest, Path.mkdir), (manifest, "directory")),
        ("20 GB of holes", _declare_hole(weights, hole), (weights, "holes")),
        ("20 GB of holes as manifest", _replace(manifest, _write_hole(hole)), (manifest, "at most")),
    ]


def _absurd_manifests() -> list[_Row]:
    return [
        ("a billion layers", _change(dimensions={"decoder_layers": 10**9}), ("decoder_layers", "1..256")),
        ("a billion tokens", _change(limits={"max_source_tokens": 10**9}), ("max_source_tokens", "1..8192")),
        ("a NUL in a name", _change(name="a\0b"), ("printable",)),
        ("a NUL in a file's name", _change(extra_files={"a\0b": {"sha256": "", "bytes": 0}}), ("plain file name",)),
        ("half a character in a name", _change(name="\ud800"), ("surrogates",)),
        ("deep nesting", _nest, ("manifest.json", "cannot be read")),
    ]
