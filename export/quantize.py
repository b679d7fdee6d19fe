"""int8 for CPUs, as a pass over the float32 graphs: every product, the token embedding and the caches.

Weights are signed, with one scale per output channel. Activations are unsigned bytes whose scale is fixed when the
model is exported, by `export.calibrate`: a scale that depended on the other rows of the step would change a sentence's
translation with its neighbours. The caches hold signed bytes with a scale per channel: attention waits for memory, so
a quarter of the bytes is about a third of the time. Keys are cached less the middle of their channel's range, which is
up to half of it: what is the same in all keys of a sentence adds the same to all scores, and the softmax removes it.

Weights that were int8 before stay what they were. Then activations are all that is rounded, and for most products each
is two bytes, the second for what rounding left: for all of the encoder, whose errors are in every step, and for those
that read the decoder's residual stream, whose few large channels take most of one byte's levels.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from export.caches import cache_middles, cache_name, cache_scales, identity_nodes, is_self
from export.columns import LEAST, LEVELS, quantize_columns
from export.embedding import TABLES
from export.graph import before_reshapes, used_names
from export.projection import CANDIDATE_LOGITS
from server.bundle.graphs import EMBEDDING, PRODUCTS

_ZERO_SYMMETRIC = 128  # uint8 that stands for 0.0 where values have both signs
_CACHE_INPUTS = slice(3, 5)  # of GroupQueryAttention: past key, past value
_SCALE_INPUT = 12  # of GroupQueryAttention: scales of the keys and then of the values in the cache
_MINIMA = {"QuickGelu": 0.278465, "Gelu": 0.169972}  # activations are never below minus this; QuickGelu's by its alpha


def quantize_graph(model: onnx.ModelProto, ranges: Mapping[str, NDArray[np.float32]]) -> onnx.ModelProto:
    """Returns a copy of a graph of `export.graphs` with int8 weights and caches.

    Args:
        model: float32.
        ranges: from `export.calibrate`, the largest magnitude of each of `linear_inputs(model)`, and of each cache
            tensor that the graph reads or returns how far each channel goes below and above zero, [2, H, D].
    """
    quantizer = _Quantizer(model, ranges)
    for node in model.graph.node:
        if node.op_type == "Gemm":
            quantizer.replace_linear(node)
        elif node.output[0] == PRODUCTS:
            quantizer.replace_projection(node)
        elif node.op_type == "Identity":
            quantizer.replace_identity(node)
        elif node.name == CANDIDATE_LOGITS:
            quantizer.replace_candidates(node)
        elif node.op_type == "GroupQueryAttention" and all(node.input[_CACHE_INPUTS]):
            quantizer.replace_attention(node)
        elif node.op_type == "ScatterND" and node.input[0] in ranges:
            quantizer.replace_write(node)
        elif node.op_type == "Gather" and node.input[0] in TABLES:
            quantizer.replace_embedding(node)
        else:
            quantizer.nodes.append(node)
    return quantizer.build()


class _Quantizer:
    def __init__(self, model: onnx.ModelProto, ranges: Mapping[str, NDArray[np.float32]]) -> None:
        self._model = model
        self._ranges = ranges
        self._weights = {tensor.name: tensor for tensor in model.graph.initializer}
        self._producers = {output: node for node in model.graph.node for output in node.output}
        self._initializers: dict[str, onnx.TensorProto] = {}
        # Nodes whose result goes into a cache, which the encoder returns: by the node's output.
        self._cached = {
            before_reshapes(self._producers, output.name): output.name
            for output in model.graph.output
            if output.name.startswith("cross_")
        }
        # Linear maps that queries, keys and values come out of in one, likewise: the cache that the keys go into.
        self._packed = {
            before_reshapes(self._producers, node.input[0]): cache_name(node.input[_CACHE_INPUTS][0])
            for node in model.graph.node
            if node.op_type == "GroupQueryAttention" and any(map(is_self, node.input[_CACHE_INPUTS]))
        }
        self.nodes: list[onnx.NodeProto] = []

    def replace_linear(self, node: onnx.NodeProto) -> None:
        """Replaces y = x W + b."""
        x, weight_name, *bias = node.input
        matrix = numpy_helper.to_array(self._weights[weight_name])
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        columns, scales, are_exact = quantize_columns(matrix.T if transposed else matrix)
        is_encoder = self._model.graph.name == "encoder"
        is_twice = are_exact and not transposed and (is_encoder or self._is_residual(x))
        producer = self._producers.get(x)
        if producer is not None and producer.op_type == "Relu" and not is_twice:
            x_scale, x_zero = self._scale_of(x, node, 255), self._zero_uint8(0)
            x = producer.input[0]  # quantising cuts off what is below zero anyway
            self.nodes.remove(producer)
        elif producer is not None and producer.op_type in _MINIMA and not is_twice:
            least = _MINIMA[producer.op_type] / _alpha(producer)
            x_scale, x_zero = self._scale_above(x, node, least)
        else:
            x_scale, x_zero = self._scale_of(x, node, LEVELS), self._zero_uint8(_ZERO_SYMMETRIC)
        cache = self._cached.get(node.output[0])
        if cache is not None:  # in units of the cache's scale, so that rounding is all that is left
            units = cache_scales(cache, self._ranges[cache])
            scales = scales / units
            centred = numpy_helper.to_array(self._weights[bias[0]]) - cache_middles(cache, self._ranges[cache])
            bias = [self._constant(f"{node.name}.units.bias", centred / units)]
        elif node.output[0] in self._packed:
            bias = [self._constant(f"{node.name}.centred.bias", self._centred(bias[0], self._packed[node.output[0]]))]
        name = f"{node.name}.int8"
        if transposed:  # ONNX Runtime turns the table of the embedding round as it loads it; a file need not have both
            factor = self._node("Transpose", [self._constant(weight_name, columns.T)], name, perm=[1, 0])
        else:
            factor = self._constant(name, columns)
        factors = [factor, self._constant(f"{node.name}.scale", scales)]
        output = node.output[0] if cache is None else f"{node.name}.units"
        if is_twice:
            self._multiply_twice(node.name, [x, x_scale, x_zero], factors, bias, output)
        else:
            quantized = self._node("QuantizeLinear", [x, x_scale, x_zero], f"{node.name}.x_uint8")
            self._multiply([quantized, x_scale, x_zero], factors, bias, output)
        if cache is not None:
            one = self._constant("unit_scale", np.array(1, np.float32))
            self._node("QuantizeLinear", [output, one, self._zero_int8()], node.output[0])

    def _multiply(self, x: list[str], factors: list[str], bias: list[str], output: str) -> str:
        """Adds a product of x, its scale and what stands for zero in it with columns and their scales."""
        quantized, scale, zero = x
        columns, scales = factors
        inputs = [quantized, columns, scale, scales, zero, "", *bias]
        return self._node("MatMulIntegerToFloat", inputs, output, domain="com.microsoft")

    def _multiply_twice(self, name: str, x: list[str], factors: list[str], bias: list[str], output: str) -> None:
        """Adds a product of x as one byte, and one of what rounding left, as another: with 254 times as many levels.

        The second has the columns under another name: ONNX Runtime cannot store weights that two nodes have unsigned,
        as it must on some processors. The file of weights has them once.
        """
        tensor, scale, zero = x
        upper = self._node("QuantizeLinear", x, f"{name}.x_upper")
        rest = self._node(
            "Sub", [tensor, self._node("DequantizeLinear", [upper, scale, zero], f"{name}.x_rounded")], f"{name}.x_rest"
        )
        step = numpy_helper.to_array(self._initializers[scale]) / np.float32(2 * LEVELS)
        lower_scale = self._constant(f"{name}.x_lower_scale", step)
        lower = self._node("QuantizeLinear", [rest, lower_scale, zero], f"{name}.x_lower")
        again = [self._constant(f"{each}.again", numpy_helper.to_array(self._initializers[each])) for each in factors]
        products = [
            self._multiply([upper, scale, zero], factors, bias, f"{name}.upper"),
            self._multiply([lower, lower_scale, zero], again, [], f"{name}.lower"),
        ]
        self._node("Add", products, output)

    def replace_projection(self, node: onnx.NodeProto) -> None:
        """Replaces the products of a shortlist's columns, which are unsigned, with x, all but the columns' scales.

        Each block has a copy of x, or all were one product, whose sums would not stay in the processor's cache.
        """
        weight, x = node.input
        x_scale = self._scale_of(x, node, LEVELS)
        quantized = self._node("QuantizeLinear", [x, x_scale, self._zero_int8()], f"{node.name}.x_int8")
        one = self._constant("unit_scale", np.array(1, np.float32))
        num_blocks = self._node("Shape", [weight], f"{node.name}.blocks", end=1)
        shape = self._node(
            "Concat", [num_blocks, self._constant("ones", np.array([1, 1]))], f"{node.name}.shape", axis=0
        )
        copies = self._node("Expand", [quantized, shape], f"{node.name}.copies")
        inputs = [weight, copies, one, x_scale, self._zero_uint8(_ZERO_SYMMETRIC)]
        self._node("MatMulIntegerToFloat", inputs, node.output[0], domain="com.microsoft")

    def replace_candidates(self, node: onnx.NodeProto) -> None:
        """Multiplies what is gathered by its columns' scales: it is less than all that could be gathered.

        Where there is no column or candidate, -1, the last one's scale is taken; what it multiplies is masked.
        """
        row = self._constant("row", np.array([1, -1]))
        table, ids, columns = (
            self._node("Reshape", [tensor, row], f"{tensor}.row")
            for tensor in (f"{EMBEDDING}.scale", "shortlist_ids", "candidates")
        )
        # Gather is ten times slower where a row has one element.
        of_columns = self._node("GatherElements", [table, ids], "shortlist.scales", axis=1)
        scales = self._node("GatherElements", [of_columns, columns], "candidates.scales", axis=1)
        gathered = self._node("GatherElements", list(node.input), f"{node.name}.units", axis=1)
        self._node("Mul", [gathered, scales], node.output[0])

    def replace_attention(self, node: onnx.NodeProto) -> None:
        """Makes GroupQueryAttention read and write caches of int8."""
        caches = [cache_name(name) for name in node.input[_CACHE_INPUTS]]
        scales = [self._constant(f"{cache}.scale", cache_scales(cache, self._ranges[cache])) for cache in caches]
        inputs = [*node.input, *[""] * (_SCALE_INPUT - len(node.input)), *scales]
        replaced = helper.make_node(node.op_type, inputs, node.output, name=node.name, domain=node.domain)
        replaced.attribute.extend(node.attribute)
        quantization = {"k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_CHANNEL", "kv_cache_bit_width": 8}
        replaced.attribute.extend(helper.make_attribute(name, value) for name, value in quantization.items())
        self.nodes.append(replaced)

    def replace_identity(self, node: onnx.NodeProto) -> None:
        """Makes int8 what goes into a cache, and floating point what comes out of one, where no kernel does."""
        nodes, constants = identity_nodes(node, self._cached.get(node.output[0]), self._ranges)
        self.nodes.extend(nodes)
        for name, value in constants.items():
            self._constant(name, value)

    def replace_write(self, node: onnx.NodeProto) -> None:
        """Makes a key or value int8 before it is written to the ring of a window; see `export.window`."""
        cache, vectors, reshaped = node.input[0], node.input[1], self._producers[node.input[2]]
        scales = cache_scales(cache, self._ranges[cache])
        zeros = self._constant(f"{cache}.zero", np.zeros(scales.shape, np.int8))
        inputs = [reshaped.input[0], self._constant(f"{cache}.scale", scales), zeros]
        quantized = self._node("QuantizeLinear", inputs, f"{reshaped.input[0]}.int8", axis=1)
        self.nodes.remove(reshaped)
        new = self._node("Reshape", [quantized, reshaped.input[1]], reshaped.output[0])
        self._node("ScatterND", [cache, vectors, new], node.output[0])

    def replace_embedding(self, node: onnx.NodeProto) -> None:
        """Looks tokens up as int8 with a scale per token."""
        table, scale_table = self._table(node.input[0])
        rows = self._node("Gather", [table, node.input[1]], f"{node.name}.int8")
        floats = self._node("Cast", [rows], f"{node.name}.float", to=TensorProto.FLOAT)
        scale = self._node("Gather", [scale_table, node.input[1]], f"{node.name}.scale")
        self._node("Mul", [floats, scale], node.output[0])

    def _table(self, name: str) -> tuple[str, str]:
        """Adds a table of rows as int8, and their scales [V, 1]."""
        quantized, scales, _ = quantize_columns(numpy_helper.to_array(self._weights[name]).T)
        return self._constant(name, quantized.T), self._constant(f"{name}.scale", scales[:, None])

    def build(self) -> onnx.ModelProto:
        """Returns the new model with the weights that are still used."""
        model, used = self._model, used_names(self.nodes)
        if EMBEDDING in self._weights and EMBEDDING not in self._initializers:
            self._table(EMBEDDING)  # an output projection of its own, for shortlists to take columns of
        kept = [t for t in model.graph.initializer if t.name in used and t.name not in self._initializers]
        graph = helper.make_graph(
            self.nodes,
            model.graph.name,
            [self._retyped(tensor) for tensor in model.graph.input],
            [self._retyped(tensor) for tensor in model.graph.output],
        )
        built = helper.make_model(
            graph, opset_imports=model.opset_import, ir_version=model.ir_version, producer_name=model.producer_name
        )
        built.graph.initializer.extend([*kept, *self._initializers.values()])
        return built

    def _scale_of(self, x: str, node: onnx.NodeProto, levels: int) -> str:
        """Adds the scale of what a node multiplies."""
        largest = float(self._ranges[before_reshapes(self._producers, x)])
        return self._constant(f"{node.name}.x_scale", np.array(max(largest / levels, LEAST), np.float32))

    def _scale_above(self, x: str, node: onnx.NodeProto, least: float) -> tuple[str, str]:
        """Adds the scale, and what stands for 0.0, of a tensor that is never below -`least`."""
        largest = float(self._ranges[before_reshapes(self._producers, x)])
        scale = (largest + least) / 255
        return self._constant(f"{node.name}.x_scale", np.array(scale, np.float32)), self._zero_uint8(
            round(least / scale)
        )

    def _centred(self, bias: str, cache: str) -> NDArray[np.float32]:
        """Returns a bias of queries, keys and values less the middles of the cache that the keys go into."""
        queries, keys, values = np.split(numpy_helper.to_array(self._weights[bias]), 3)
        return np.concatenate([queries, keys - cache_middles(cache, self._ranges[cache]), values])

    def _is_residual(self, x: str) -> bool:
        """Whether a tensor is the sum of all sub-layers before, normalised or not."""
        producer = self._producers.get(before_reshapes(self._producers, x))
        return producer is not None and producer.op_type in ("LayerNormalization", "Add")

    def _retyped(self, tensor: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        if cache_name(tensor.name) in self._ranges:
            elem_type = TensorProto.INT8
        elif tensor.name == "shortlist_weight":
            elem_type = TensorProto.UINT8
        else:
            return tensor
        retyped = onnx.ValueInfoProto()
        retyped.CopyFrom(tensor)
        retyped.type.tensor_type.elem_type = elem_type
        return retyped

    def _zero_int8(self) -> str:
        return self._constant("zero_int8", np.array(0, np.int8))

    def _zero_uint8(self, zero: int) -> str:
        return self._constant(f"zero_{zero}", np.array(zero, np.uint8))

    def _node(self, op: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def _constant(self, name: str, value: NDArray[np.generic]) -> str:
        self._initializers[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name


def _alpha(node: onnx.NodeProto) -> float:
    return next((attribute.f for attribute in node.attribute if attribute.name == "alpha"), 1.0)
