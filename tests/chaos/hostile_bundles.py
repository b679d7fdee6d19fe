"""Bundles and folders by whoever may write to the folder of models and means harm: each kind is a line of a table."""

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import onnx

from server.bundle.files import describe_file
from server.bundle.manifest import seal_manifest
from tests.chaos.hostile_graphs import ENCODER, GRAPHS, Change
from tests.expanding import expanding

VARIANT = "cpu-fp32"
Spoil = Callable[[Path], None]


def _graph(change: Change, file: str) -> Spoil:
    """Changes a graph, and makes the manifest and its seal agree."""

    def spoil(bundle: Path) -> None:
        model = onnx.load(bundle / VARIANT / file, load_external_data=False)
        changed = change(model)
        _replace(bundle, file, changed if isinstance(changed, bytes) else model.SerializeToString())

    return spoil


def _replace(bundle: Path, file: str, data: bytes) -> None:
    (bundle / VARIANT / file).write_bytes(data)
    facts = describe_file(bundle / VARIANT / file)
    described = {"sha256": facts.sha256, "bytes": facts.bytes}
    _manifest(lambda manifest: manifest["variants"][VARIANT]["files"].update({file: described}))(bundle)


def _replace_top(bundle: Path, file: str, data: bytes) -> None:
    """Changes the tokenizer, and makes the manifest and its seal agree."""
    (bundle / file).write_bytes(data)
    facts = describe_file(bundle / file)
    _manifest(lambda manifest: manifest.update(tokenizer={"sha256": facts.sha256, "bytes": facts.bytes}))(bundle)


def _add_holes(bundle: Path, number: int) -> None:
    """Adds files that are holes, each as large as it may be."""
    facts = {"sha256": hashlib.sha256(bytes(15 << 20)).hexdigest(), "bytes": 15 << 20}
    for index in range(number):
        _sparse(15 << 20)(bundle / f"hole-{index}")
    _manifest(lambda manifest: manifest["extra_files"].update({f"hole-{i}": facts for i in range(number)}))(bundle)


def _manifest(change: Callable[[dict], object]) -> Spoil:  # type: ignore[type-arg]
    def spoil(bundle: Path) -> None:
        manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
        change(manifest)
        (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        seal_manifest(bundle)

    return spoil


def _file(name: str, make: Callable[[Path], object]) -> Spoil:
    def spoil(bundle: Path) -> None:
        (bundle / name).unlink()
        make(bundle / name)

    return spoil


def _sparse(size: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.touch()
        os.truncate(path, size)

    return make


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


_WEIGHTS = f"{VARIANT}/weights.bin"
_GIB = 1 << 30
# Copies of a good bundle, spoilt.
BUNDLES: dict[str, Spoil] = {
    **{name: _graph(*graph) for name, graph in GRAPHS.items()},
    "weights-cut": lambda bundle: os.truncate(bundle / _WEIGHTS, 100),
    "weights-with-holes": lambda bundle: os.truncate(bundle / _WEIGHTS, 1 << 40),
    "weights-of-a-fifo": _file(_WEIGHTS, os.mkfifo),
    "weights-of-a-socket": _file(_WEIGHTS, _socket),
    "weights-of-a-device": _file(_WEIGHTS, lambda path: path.symlink_to("/dev/zero")),
    "tokenizer-that-expands": lambda bundle: _replace_top(
        bundle, "tokenizer.model", expanding(2_000_000, (bundle / "tokenizer.model").read_bytes())
    ),
    "files-of-holes": lambda bundle: _add_holes(bundle, 400),
    "tokenizer-of-noise": _file("tokenizer.model", lambda path: path.write_bytes(os.urandom(1000))),
    "wrong-golden": _manifest(lambda manifest: manifest["golden"]["outputs"][VARIANT].update(ids=[5, 6, 7])),
    "vast-dimensions": _manifest(lambda manifest: manifest["dimensions"].update(decoder_layers=10**9)),
}


def _manifest_of(text: str | bytes) -> Spoil:
    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "manifest.json").write_bytes(text if isinstance(text, bytes) else text.encode())

    return make


def _manifest_by(make_file: Callable[[Path], object]) -> Spoil:
    def make(folder: Path) -> None:
        folder.mkdir()
        make_file(folder / "manifest.json")

    return make


def _deep(levels: int) -> Spoil:
    def make(folder: Path) -> None:
        _manifest_of("{}")(folder)
        here = os.open(folder, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir("d", dir_fd=here)
            deeper = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = deeper
        os.close(here)

    return make


def _many(number: int, name: str) -> Spoil:
    """Makes so many folders beside the given one."""

    def make(folder: Path) -> None:
        for i in range(number):
            (folder.parent / name.format(i)).mkdir()

    return make


def _versions(number: int) -> Spoil:
    def make(folder: Path) -> None:
        for i in range(number):
            (folder / str(i)).mkdir(parents=True)
            (folder / str(i) / "manifest.json").write_text("{}", encoding="ascii")

    return make


# Folders, made from nothing.
FOLDERS: dict[str, Spoil] = {
    "deep": _deep(1500),
    "deeper": _deep(5000),
    "bad names": _many(30_000, "bad name {}"),
    "empty-ones": _many(2_000, "empty-{}"),
    "many-versions": _versions(2_000),
    "named\nfor a forged line\x1b[2J": lambda folder: folder.mkdir(),
    os.fsdecode(b"no \xff text"): lambda folder: folder.mkdir(),
    "liveness": lambda folder: folder.mkdir(),
    "a-loop": lambda folder: folder.symlink_to(folder.name),
    "the-root": lambda folder: folder.symlink_to("/"),
    "the-processes": lambda folder: folder.symlink_to("/proc"),
    "no-manifest": _manifest_of(""),
    "noise": _manifest_of(bytes(range(256))),
    "deep-json": _manifest_of("[" * 500_000),
    "long-number": _manifest_of('{"revision": ' + "9" * 900_000 + "}"),
    "long-key": _manifest_of(json.dumps({"revision": 10, "k" * 900_000: 1})),
    "many-keys": _manifest_of(json.dumps({"revision": 10, **{f"k{i}": i for i in range(60_000)}})),
    "large-manifest": _manifest_by(_sparse(100 * _GIB)),
    "manifest-of-a-fifo": _manifest_by(os.mkfifo),
    "manifest-of-a-device": _manifest_by(lambda path: path.symlink_to("/dev/zero")),
    "manifest-is-a-folder": _manifest_by(os.mkdir),
}


def alone(bundle: Path, directory: Path) -> Path:
    """Makes a bundle of one variant of another's, which is soon copied."""
    others = [each.name for each in bundle.iterdir() if (each / ENCODER).exists() and each.name != VARIANT]
    shutil.copytree(bundle, directory, ignore=shutil.ignore_patterns(*others))

    def leave_out(manifest: dict[str, dict[str, object]]) -> None:
        manifest["variants"] = {VARIANT: manifest["variants"][VARIANT]}

    _manifest(leave_out)(directory)
    return directory


def make_hostile(models: Path, good: Path, name: str) -> None:
    """Makes a hostile folder or bundle of one kind in a folder of models.

    Args:
        models: the folder.
        good: a bundle, of which spoilt ones are copies.
        name: of the kind, a key of `FOLDERS` or `BUNDLES`.
    """
    if name in FOLDERS:
        FOLDERS[name](models / name)
        return
    staged = models / f".{name}"
    shutil.copytree(good, staged)
    BUNDLES[name](staged)
    staged.rename(models / name)
