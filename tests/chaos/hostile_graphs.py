"""Graphs that an operator should not load, by somebody who means harm: each kind is a line of a table."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ENCODER = "encoder.onnx"
_FLOAT = TensorProto.FLOAT
FORGED_NODE = "x\x1b]0;owned\x07\x1b[2J\nbabelserve: proven"
Change = Callable[[onnx.ModelProto], object]


def _add(model: onnx.ModelProto, *nodes: onnx.NodeProto, output: str, kind: int = _FLOAT, **constants: object) -> None:
    """Adds nodes to a graph, constants for them, and an output so that no optimizer takes them away."""
    for name, value in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    model.graph.node.extend(nodes)
    model.graph.output.append(helper.make_tensor_value_info(output, kind, None))


def _failing(model: onnx.ModelProto) -> None:
    """Fails in every run, and has ONNX Runtime tell of a node whose name a terminal would obey."""
    node = helper.make_node("Reshape", ["source_lengths", "many"], ["wrong"], name=FORGED_NODE)
    _add(model, node, output="wrong", kind=TensorProto.INT32, many=np.array([1_000_003], np.int64))


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


# What changes a graph, or returns the bytes that take its place; and the graph's file.
GRAPHS: dict[str, tuple[Change, str]] = {
    "failing": (_failing, ENCODER),
    "loop": (_loop, ENCODER),
    "loop-in-if": (_loop_in_if, ENCODER),
    "loop-in-function": (_loop_in_function, ENCODER),
    "loop-in-step": (_loop, "decoder_step.onnx"),
    "loop-in-shared-step": (_loop, "decoder_step_shared.onnx"),
    "loop-in-aligner": (_loop, "aligner.onnx"),
    "products": (_products(10_000, 3000), ENCODER),
    "one-product": (_products(1, 14_000), ENCODER),
    "scan-of-nothing": (_scan_of_nothing, ENCODER),
    "constant-of-shape": (_node("ConstantOfShape", ["s"], s=np.array([2_400_000_000], np.int64)), ENCODER),
    "expand": (_node("Expand", ["x", "s"], x=np.float32(1), s=np.array([2_400_000, 1000], np.int64)), ENCODER),
    "tile": (_node("Tile", ["x", "r"], x=np.ones(1000, np.float32), r=np.array([2_400_000], np.int64)), ENCODER),
    "range": (_node("Range", ["a", "b", "c"], 7, a=np.int64(0), b=np.int64(10**10), c=np.int64(1)), ENCODER),
    "outer-sum": (_node("Add", ["x", "y"], x=np.ones((50_000, 1), np.float32), y=np.ones(50_000, np.float32)), ENCODER),
    "one-hot": (
        _node(
            "OneHot",
            ["i", "d", "v"],
            i=np.zeros(1000, np.int64),
            d=np.int64(10**7),
            v=np.array([0, 1], np.float32),
        ),
        ENCODER,
    ),
    "pad": (_node("Pad", ["x", "p"], x=np.ones(1, np.float32), p=np.array([0, 3 * 10**9], np.int64)), ENCODER),
    "doubled": (_doubled(22), ENCODER),
    "doubled-in-step": (_doubled(22), "decoder_step.onnx"),
    "nested-1000": (_nested(1000), ENCODER),
    "graph-of-20-mib": (lambda model: model.graph.__setattr__("doc_string", "x" * (20 << 20)), ENCODER),
    "graph-of-ort": (lambda _: b"\x10\0\0\0ORTM" + bytes(100), ENCODER),
    "graph-of-noise": (lambda _: bytes(range(256)) * 40, ENCODER),
    "empty-graph": (lambda _: b"", ENCODER),
    "doubles": (_embedding(data_type=TensorProto.DOUBLE), ENCODER),
    "doubles-in-another-order": (_doubles_in_another_order, ENCODER),
    "behind-the-weights": (_embedding(place={"offset": str(1 << 40)}), ENCODER),
    "before-the-weights": (_embedding(place={"offset": "-4096"}), ENCODER),
    "another-file": (_embedding(place={"location": "../../../../etc/passwd"}), ENCODER),
    "an-address": (_embedding(place={"location": "*/_ORT_MEM_ADDR_/*", "offset": "4096"}), ENCODER),
    "prepacked": (_embedding(place={"prepacked_0": "k|0|4096|;"}), ENCODER),
}
