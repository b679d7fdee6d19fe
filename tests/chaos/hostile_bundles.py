"""Bundles and folders by whoever may write to the folder of models and means harm: each kind is a line of a table."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from server.bundle.files import describe_file
from server.bundle.manifest import seal_manifest

VARIANT = "cpu-fp32"
_FLOAT = TensorProto.FLOAT
Spoil = Callable[[Path], None]


def _graph(change: Callable[[onnx.ModelProto], object], file: str = "encoder.onnx") -> Spoil:
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


def _manifest(change: Callable[[dict], object]) -> Spoil:  # type: ignore[type-arg]
    def spoil(bundle: Path) -> None:
        manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
        change(manifest)
        (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        seal_manifest(bundle)

    return spoil


def _add(model: onnx.ModelProto, *nodes: onnx.NodeProto, output: str, kind: int = _FLOAT, **constants: object) -> None:
    """Adds nodes to a graph, constants for them, and an output so that no optimizer takes them away."""
    for name, value in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    model.graph.node.extend(nodes)
    model.graph.output.append(helper.make_tensor_value_info(output, kind, None))


def _loop(model: onnx.ModelProto) -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Identity", ["x"], ["x2"])],
        "body",
        [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", 7), ("c", 9), ("x", 1))],
        [helper.make_tensor_value_info(name, kind, []) for name, kind in (("c2", 9), ("x2", 1))],
    )
    loop = helper.make_node("Loop", ["", "yes", "zero"], ["endless"], body=body)
    _add(model, loop, output="endless", yes=np.array(True), zero=np.float32(0))


def _loop_in_if(model: onnx.ModelProto) -> None:
    inner = onnx.ModelProto()
    _loop(inner)
    branch = helper.make_graph(inner.graph.node, "branch", [], inner.graph.output, inner.graph.initializer)
    node = helper.make_node("If", ["really"], ["maybe"], then_branch=branch, else_branch=branch)
    _add(model, node, output="maybe", really=np.array(True))


def _loop_in_function(model: onnx.ModelProto) -> None:
    inner = onnx.ModelProto()
    _loop(inner)
    function = helper.make_function(
        "own", "Innocent", ["yes", "zero"], ["endless"], inner.graph.node, model.opset_import
    )
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("own", 1))
    node = helper.make_node("Innocent", ["yes", "zero"], ["endless"], domain="own")
    _add(model, node, output="endless", yes=np.array(True), zero=np.float32(0))


def _products(number: int, size: int) -> Callable[[onnx.ModelProto], None]:
    """Multiplies large matrices for hours, none of them known before a run."""

    def change(model: onnx.ModelProto) -> None:
        nodes = [
            helper.make_node("Cast", ["source_lengths"], ["as_floats"], to=_FLOAT),
            helper.make_node("ReduceMax", ["as_floats"], ["one_float"], keepdims=1),
            helper.make_node("Expand", ["one_float", "size"], ["p0"]),
            *(helper.make_node("MatMul", [f"p{i}", "p0"], [f"p{i + 1}"]) for i in range(number)),
        ]
        _add(model, *nodes, output=f"p{number}", size=np.array([size, size], np.int64))

    return change


def _scan_of_nothing(model: onnx.ModelProto) -> None:
    """Scans 10^15 rows of no columns, which take no memory."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["s"], ["s2"]), helper.make_node("Identity", ["r"], ["r2"])],
        "body",
        [helper.make_tensor_value_info("s", _FLOAT, []), helper.make_tensor_value_info("r", _FLOAT, [0])],
        [helper.make_tensor_value_info("s2", _FLOAT, []), helper.make_tensor_value_info("r2", _FLOAT, [0])],
    )
    rows = helper.make_node("ConstantOfShape", ["many"], ["rows"])
    scan = helper.make_node("Scan", ["start", "rows"], ["last", "all_rows"], body=body, num_scan_inputs=1)
    _add(model, rows, scan, output="last", many=np.array([10**15, 0], np.int64), start=np.float32(0))


def _doubled(times: int) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        nodes = [helper.make_node("Concat", [f"d{i}", f"d{i}"], [f"d{i + 1}"], axis=0) for i in range(times)]
        _add(model, *nodes, output=f"d{times}", d0=np.zeros(1024, np.float32))

    return change


def _node(op: str, inputs: list[str], kind: int = _FLOAT, **constants: object) -> Callable[[onnx.ModelProto], None]:
    return lambda model: _add(model, helper.make_node(op, inputs, ["large"]), output="large", kind=kind, **constants)


def _nested(levels: int) -> Callable[[onnx.ModelProto], bytes]:
    """Nests graphs, in the bytes of protobuf, since its own classes refuse to."""

    def field(number: int, content: bytes) -> bytes:
        length, size = b"", len(content)
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    def change(model: onnx.ModelProto) -> bytes:
        graph = b""
        for _ in range(levels):
            graph = field(1, field(4, b"If") + field(5, field(6, graph)))
        return model.SerializeToString() + field(7, graph)

    return change


def _embedding(**changes: object) -> Callable[[onnx.ModelProto], None]:
    """Changes the tensor of the embedding; `place` are entries of where it is."""

    def change(model: onnx.ModelProto) -> None:
        (tensor,) = [each for each in model.graph.initializer if each.name == "embedding"]
        for name, value in changes.items():
            if name == "place":
                for entry in [each for each in tensor.external_data if each.key in value]:  # type: ignore[operator]
                    tensor.external_data.remove(entry)
                for key, text in value.items():  # type: ignore[attr-defined]
                    tensor.external_data.add(key=key, value=text)
            else:
                setattr(tensor, name, value)

    return change


def _doubles_in_another_order(model: onnx.ModelProto) -> bytes:
    """The embedding's type, doubles, in a field of its own behind all others."""
    name = helper.make_model(onnx.GraphProto(initializer=[TensorProto(name="embedding", data_type=TensorProto.DOUBLE)]))
    _embedding(data_type=TensorProto.DOUBLE)(model)
    return model.SerializeToString() + name.SerializeToString()


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
    "loop": _graph(_loop),
    "loop-in-if": _graph(_loop_in_if),
    "loop-in-function": _graph(_loop_in_function),
    "loop-in-step": _graph(_loop, "decoder_step.onnx"),
    "loop-in-shared-step": _graph(_loop, "decoder_step_shared.onnx"),
    "loop-in-aligner": _graph(_loop, "aligner.onnx"),
    "products": _graph(_products(10_000, 3000)),
    "one-product": _graph(_products(1, 14_000)),
    "scan-of-nothing": _graph(_scan_of_nothing),
    "constant-of-shape": _graph(_node("ConstantOfShape", ["s"], s=np.array([2_400_000_000], np.int64))),
    "expand": _graph(_node("Expand", ["x", "s"], x=np.float32(1), s=np.array([2_400_000, 1000], np.int64))),
    "tile": _graph(_node("Tile", ["x", "r"], x=np.ones(1000, np.float32), r=np.array([2_400_000], np.int64))),
    "range": _graph(_node("Range", ["a", "b", "c"], 7, a=np.int64(0), b=np.int64(10**10), c=np.int64(1))),
    "outer-sum": _graph(_node("Add", ["x", "y"], x=np.ones((50_000, 1), np.float32), y=np.ones(50_000, np.float32))),
    "one-hot": _graph(
        _node(
            "OneHot",
            ["i", "d", "v"],
            i=np.zeros(1000, np.int64),
            d=np.int64(10**7),
            v=np.array([0, 1], np.float32),
        )
    ),
    "pad": _graph(_node("Pad", ["x", "p"], x=np.ones(1, np.float32), p=np.array([0, 3 * 10**9], np.int64))),
    "doubled": _graph(_doubled(22)),
    "doubled-in-step": _graph(_doubled(22), "decoder_step.onnx"),
    "nested-1000": _graph(_nested(1000)),
    "graph-of-20-mib": _graph(lambda model: model.graph.__setattr__("doc_string", "x" * (20 << 20))),
    "graph-of-ort": _graph(lambda _: b"\x10\0\0\0ORTM" + bytes(100)),
    "graph-of-noise": _graph(lambda _: bytes(range(256)) * 40),
    "empty-graph": _graph(lambda _: b""),
    "doubles": _graph(_embedding(data_type=TensorProto.DOUBLE)),
    "doubles-in-another-order": _graph(_doubles_in_another_order),
    "behind-the-weights": _graph(_embedding(place={"offset": str(1 << 40)})),
    "before-the-weights": _graph(_embedding(place={"offset": "-4096"})),
    "another-file": _graph(_embedding(place={"location": "../../../../etc/passwd"})),
    "an-address": _graph(_embedding(place={"location": "*/_ORT_MEM_ADDR_/*", "offset": "4096"})),
    "prepacked": _graph(_embedding(place={"prepacked_0": "k|0|4096|;"})),
    "weights-cut": lambda bundle: os.truncate(bundle / _WEIGHTS, 100),
    "weights-with-holes": lambda bundle: os.truncate(bundle / _WEIGHTS, 1 << 40),
    "weights-of-a-fifo": _file(_WEIGHTS, os.mkfifo),
    "weights-of-a-socket": _file(_WEIGHTS, _socket),
    "weights-of-a-device": _file(_WEIGHTS, lambda path: path.symlink_to("/dev/zero")),
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
    others = [each.name for each in bundle.iterdir() if (each / "encoder.onnx").exists() and each.name != VARIANT]
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
