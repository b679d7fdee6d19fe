"""int8 for CPUs, as a pass over the float32 graphs: every `Gemm` and the token embedding.

Weights are signed, one scale per output channel. Activations are unsigned bytes whose scale must not depend on the
other rows of the step, or a sentence's translation would change with its neighbours:
- what comes from a LayerNormalization is alike for all text and gets one fixed scale, calibrated on real sentences;
- everything else (attention contexts, hidden activations, embeddings) is divided by its own row's maximum magnitude.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

_ZERO_SYMMETRIC = 128  # uint8 that stands for 0.0 where values have both signs


def quantize_graph(model: onnx.ModelProto, ranges: Mapping[str, float]) -> onnx.ModelProto:
    """Returns a copy of a graph of `export.graphs` with int8 weights.

    Args:
        model: float32.
        ranges: largest magnitude of each tensor of `normalised_tensors(model)`, from calibration.
    """
    quantizer = _Quantizer(model)
    fixed = normalised_tensors(model)
    for node in model.graph.node:
        if node.op_type == "Gemm":
            source = _before_reshapes(model, node.input[0])
            quantizer.replace_linear(node, ranges[source] if source in fixed else None)
        elif node.op_type == "Gather" and node.input[0] == "embedding":
            quantizer.replace_embedding(node)
        else:
            quantizer.nodes.append(node)
    return quantizer.build(model)


def normalised_tensors(model: onnx.ModelProto) -> set[str]:
    """Returns the names of the tensors that need a calibrated range: LayerNormalization outputs that feed a `Gemm`."""
    norms = {node.output[0] for node in model.graph.node if node.op_type == "LayerNormalization"}
    return norms & {_before_reshapes(model, n.input[0]) for n in model.graph.node if n.op_type == "Gemm"}


class _Quantizer:
    def __init__(self, model: onnx.ModelProto) -> None:
        self._weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self._producers = {output: node.op_type for node in model.graph.node for output in node.output}
        self._initializers: dict[str, onnx.TensorProto] = {}
        self.nodes: list[onnx.NodeProto] = []

    def replace_linear(self, node: onnx.NodeProto, fixed_range: float | None) -> None:
        """Replaces y = x W + b; `fixed_range` is the largest magnitude of x, None for a scale per row."""
        x, weight_name, *bias = node.input
        matrix = self._weights[weight_name]
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        quantized, scales = quantize_columns(matrix.T if transposed else matrix)
        weight = self._constant(f"{node.name}.int8", quantized)
        weight_scale = self._constant(f"{node.name}.scale", scales)
        if fixed_range is not None:
            scale = fixed_range / 127
            self._multiply(node.name, x, scale, _ZERO_SYMMETRIC, [weight, weight_scale], bias, node.output[0])
            return
        is_positive = self._producers.get(x) == "Relu"
        levels, zero = (255, 0) if is_positive else (127, _ZERO_SYMMETRIC)
        magnitude = x if is_positive else self._node("Abs", [x], f"{node.name}.magnitude")
        last_axis = self._constant("last_axis", np.array([-1], np.int64))
        largest = self._node("ReduceMax", [magnitude, last_axis], f"{node.name}.largest", keepdims=1)
        tiny = self._constant("tiny", np.array(1e-12, np.float32))
        row_scale = self._node("Max", [largest, tiny], f"{node.name}.row_scale")
        unit = self._node("Div", [x, row_scale], f"{node.name}.unit")
        product = self._multiply(node.name, unit, 1 / levels, zero, [weight, weight_scale], [], f"{node.name}.product")
        scaled = node.output[0] if not bias else f"{node.name}.scaled"
        self._node("Mul", [product, row_scale], scaled)
        if bias:
            self._node("Add", [scaled, bias[0]], node.output[0])

    def replace_embedding(self, node: onnx.NodeProto) -> None:
        """Looks tokens up as int8 with a scale per token."""
        quantized, scales = quantize_columns(self._weights["embedding"].T)
        table = self._constant("embedding.int8", np.ascontiguousarray(quantized.T))
        scale_table = self._constant("embedding.scale", scales[:, None])
        rows = self._node("Gather", [table, node.input[1]], f"{node.name}.int8")
        floats = self._node("Cast", [rows], f"{node.name}.float", to=onnx.TensorProto.FLOAT)
        scale = self._node("Gather", [scale_table, node.input[1]], f"{node.name}.scale")
        self._node("Mul", [floats, scale], node.output[0])

    def build(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Returns the new model with the weights that are still used."""
        used = {name for node in self.nodes for name in node.input}
        kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
        graph = helper.make_graph(
            self.nodes,
            model.graph.name,
            list(model.graph.input),
            list(model.graph.output),
            [*kept, *self._initializers.values()],
        )
        return helper.make_model(
            graph, opset_imports=model.opset_import, ir_version=model.ir_version, producer_name=model.producer_name
        )

    def _multiply(
        self, name: str, x: str, scale: float, zero: int, weight: list[str], bias: list[str], output: str
    ) -> str:
        x_scale = self._constant(f"{name}.x_scale", np.array(scale, np.float32))
        x_zero = self._constant(f"zero_{zero}", np.array(zero, np.uint8))
        quantized = self._node("QuantizeLinear", [x, x_scale, x_zero], f"{name}.x_uint8")
        inputs = [quantized, weight[0], x_scale, weight[1], x_zero, "", *bias]
        return self._node("MatMulIntegerToFloat", inputs, output, domain="com.microsoft")

    def _node(self, op: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def _constant(self, name: str, value: NDArray[np.generic]) -> str:
        self._initializers[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name


def quantize_columns(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Returns int8 [K, N] in -127..127 and the scale [N] of each column; int8 * scale is close to the matrix."""
    scales = np.maximum(np.abs(matrix).max(axis=0), 1e-12).astype(np.float32) / 127
    return np.rint(matrix / scales).astype(np.int8), scales


def _before_reshapes(model: onnx.ModelProto, name: str) -> str:
    producers = {node.output[0]: node for node in model.graph.node}
    while name in producers and producers[name].op_type == "Reshape":
        name = producers[name].input[0]
    return name
