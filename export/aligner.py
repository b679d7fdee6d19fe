"""What a finished translation has attended to, as one more graph of a variant, made of its decoder step.

The step takes one token of each row. The aligner takes all tokens of all rows at once. Its linear maps are those of the
step, int8 or not. Between them self-attention looks at the tokens before instead of a cache, and SSRUs and retention
begin with states of zeros. Attention is taken apart into products and a softmax, because the weights of cross-attention
are the answer, and because ONNX Runtime's kernel, which is made for caches, takes longer for a few short rows.
The graph has no weights of its own: what it reads lies in the variant's file already.

It ends at the last layer with a head that says something. `export.alignment` finds out which heads these are.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from export.caches import is_self
from export.graph import Graph, prune
from server.bundle.alignment import Head
from server.bundle.files import describe_file
from server.bundle.graphs import (
    ALIGNER_FILE,
    ALIGNER_INPUTS,
    ATTENTION_OUTPUT,
    PLAIN_STEP,
    aligner_caches,
)
from server.bundle.states import SELF_STATE
from server.bundle.variant_files import Variant

_UNSEEN = -1e4  # is added to the score of what is not seen; half precision has it
# What a score may be less than the largest one: less counts as so much, which leaves 1e-28 of a weight. Half of it, and
# what is not seen might be noticed; twice that, and the softmax makes denormal numbers, with which processors take four
# times as long.
_MOST_LESS = 64.0
_SCALES = slice(12, 14)  # of GroupQueryAttention's inputs: of keys and of values in an int8 cache
_CACHES = slice(3, 5)


def aligner_graph(step: onnx.ModelProto, heads: Sequence[Head]) -> onnx.ModelProto:
    """Builds what says how finished translations are aligned.

    It reads `target_ids` int64 [B, T], which begin with bos, `slots` int64 [B], `source_lengths` int32 [B], and of the
    cross-attention caches [slots, H, S, D] those of the layers up to the last one with a head. It returns `attention`
    float32 [B, T - 1, S]: how much the heads, on average, look at each source token for `target_ids[b, t + 1]`. What
    pads a row's ids does not matter.

    Args:
        step: the plain step of the variant, without its weights or with them.
        heads: at least one.
    """
    last = max(head.layer for head in heads)
    aligner = _Aligner(step, last)
    graph = aligner.graph
    total = graph.node("Sum", [aligner.of_head(head) for head in heads])  # for Mean there is no kernel for CUDA
    mean = graph.node("Mul", [total, graph.constant(1 / len(heads), graph.dtype)])
    graph.node("Cast", [mean], ATTENTION_OUTPUT, to=TensorProto.FLOAT)
    graph.output(ATTENTION_OUTPUT, np.float32, ["rows", "answered", "source"])
    return aligner.build()


def write_aligner(directory: Path, variant: Variant, heads: Sequence[Head], out: Path | None = None) -> Variant:
    """Writes the aligner of a variant, or nothing if there are no heads.

    Args:
        directory: of the variant.
        variant: as the manifest describes it.
        heads: whose attention says how translations are aligned.
        out: directory that gets the file; None: the variant's.

    Returns:
        The variant, whose files have the aligner among them.
    """
    if not heads:
        return variant
    path = (out or directory) / ALIGNER_FILE
    step = onnx.load(directory / PLAIN_STEP.file, load_external_data=False)
    onnx.save(aligner_graph(step, heads), path)
    files = {**variant.files, ALIGNER_FILE: describe_file(path)}
    return replace(variant, files=files)


def all_heads_graph(step: onnx.ModelProto, num_layers: int) -> onnx.ModelProto:
    """Builds the same inputs -> `attention.{i}` [B, H, T, S]: what each head of layer i looks at."""
    aligner = _Aligner(step, num_layers - 1)
    for layer, weights in enumerate(aligner.weights):
        aligner.graph.node("Cast", [weights], f"{ATTENTION_OUTPUT}.{layer}", to=TensorProto.FLOAT)
        aligner.graph.output(f"{ATTENTION_OUTPUT}.{layer}", np.float32, ["rows", "heads", "target", "source"])
    return aligner.build()


class _Aligner:
    """The graph up to the weights of a layer's cross-attention.

    Attributes:
        graph: under construction.
        weights: names of the attention weights [B, H, T, S], by layer.
    """

    def __init__(self, step: onnx.ModelProto, last: int) -> None:
        self._last = last
        self._types = {each.name: each.type.tensor_type for each in step.graph.input}
        self._initializers = {tensor.name: tensor for tensor in step.graph.initializer}
        self._producers = {output: node for node in step.graph.node for output in node.output}
        _, heads, _, width = self._types["cross_key.0"].shape.dim
        self._num_heads, self._width = heads.dim_value, width.dim_value
        self.graph = Graph("aligner", self._float_type())
        self.weights: list[str] = []
        self._begin()
        for node in step.graph.node:
            if len(self.weights) <= last:
                self._add(node)

    def build(self) -> onnx.ModelProto:
        """Returns the graph without what its outputs do not need, and with the weights of the step that they need."""
        model = self.graph.build()
        needed = prune(model.graph)
        tensors = self._initializers | {tensor.name: tensor for tensor in model.graph.initializer}
        del model.graph.initializer[:]
        model.graph.initializer.extend(tensor for name, tensor in tensors.items() if name in needed)
        return model

    def _begin(self) -> None:
        """Adds what the step is fed for one token, for all: ids and positions as [B * T], and the shapes of others."""
        graph, (ids, slots, lengths) = self.graph, ALIGNER_INPUTS
        graph.input(ids, np.int64, ["rows", "target"])
        graph.input(slots, np.int64, ["rows"])
        graph.input(lengths, np.int32, ["rows"])
        for name in aligner_caches(self._last):
            shape: list[str | int] = ["slots", self._num_heads, "source", self._width]
            graph.input(name, helper.tensor_dtype_to_np_dtype(self._types[name].elem_type), shape)
        self._shape = graph.node("Shape", [ids])  # B, T
        length = graph.node("Gather", [self._shape, graph.constant(1)])  # [1]
        order = graph.node("Range", [graph.constant(0), length, graph.constant(1)])
        places = graph.reshape(graph.node("Expand", [order, self._shape]), [-1])
        graph.node("Cast", [places], "past_lengths", to=TensorProto.INT32)
        graph.reshape(ids, [-1], "input_ids")
        self._num_rows = graph.node("Gather", [self._shape, graph.constant(0)])  # [1]
        # What pads a row lies behind its last token, which does not see it.
        self._ages = graph.node("Sub", [graph.reshape(order, [-1, 1]), order])  # [T, T], of a token as another sees it
        self._self_masks: dict[int, str] = {}  # by window
        source = graph.node("Gather", [graph.node("Shape", ["cross_key.0"]), graph.constant(2)])
        positions = graph.node("Range", [graph.constant(0), source, graph.constant(1)])
        ends = graph.reshape(graph.node("Cast", [lengths], to=TensorProto.INT64), [-1, 1, 1, 1])
        self._source_mask = self._mask(graph.node("Less", [positions, ends]))  # [B, 1, 1, S]

    def _add(self, node: onnx.NodeProto) -> None:
        """Adds a node of the step, or what stands for it here."""
        if node.op_type == "GroupQueryAttention":
            (self._attend_self if is_self(node.input[_CACHES][0]) else self._attend_cross)(node)
        elif self._is_recurrence(node):
            self._recur(node)
        elif node.op_type == "LinearAttention":
            self._retain(node)
        else:
            self.graph.nodes.append(node)

    def _attend_self(self, node: onnx.NodeProto) -> None:
        graph, packed, window = self.graph, node.input[0], self._window_of(node)
        if window:  # a step has keys and values of one token for itself
            split = self._producers[self._producers[packed].input[0]]
            packed = split.input[0]
        if window not in self._self_masks:
            self._self_masks[window] = self._mask(self._is_seen(window))
        packed = graph.node("Reshape", [packed, self._rows_of(3, self._num_heads, self._width)])
        packed = graph.node("Transpose", [packed], perm=[2, 0, 3, 1, 4])  # [3, B, H, T, D]
        query, keys, values = (self._part(packed, each, 0) for each in range(3))
        weights = self._weights(query, keys, self._self_masks[window])
        self._write_context(weights, values, node)

    def _is_seen(self, window: int) -> str:
        """Returns which tokens each token sees, bool [T, T]: those before it and itself, at most a window of them."""
        graph = self.graph
        is_past = graph.node("Less", [graph.constant(-1), self._ages])
        if not window:
            return is_past
        return graph.node("And", [is_past, graph.node("Less", [self._ages, graph.constant(window)])])

    def _window_of(self, node: onnx.NodeProto) -> int:
        """Returns how many positions an attention of the decoder to itself sees, 0 for all; see `export.window`."""
        last_place = self._producers.get(node.input[5])  # the lesser of what there is and what is seen, less the token
        return 0 if last_place is None else int(numpy_helper.to_array(self._initializers[last_place.input[1]])[0]) + 1

    def _attend_cross(self, node: onnx.NodeProto) -> None:
        graph = self.graph
        query = graph.node("Reshape", [node.input[0], self._rows_of(self._num_heads, self._width)])
        query = graph.node("Transpose", [query], perm=[0, 2, 1, 3])  # [B, H, T, D]
        scales = node.input[_SCALES] or ["", ""]
        keys, values = (self._as_floats(*each) for each in zip(node.input[_CACHES], scales, strict=True))
        self.weights.append(self._weights(query, keys, self._source_mask))
        if len(self.weights) <= self._last:
            self._write_context(self.weights[-1], values, node)

    def _mask(self, is_seen: str) -> str:
        """Returns what is added to scores: 0 where a token sees another one, and else `_UNSEEN`."""
        graph = self.graph
        seen, unseen = (graph.constant(value, graph.dtype) for value in (0.0, _UNSEEN))
        return graph.node("Where", [is_seen, seen, unseen])

    def _weights(self, query: str, keys: str, mask: str) -> str:
        """Returns how much queries [B, H, T, D] attend to keys [B, H, S, D]: [B, H, T, S]."""
        graph = self.graph
        query = graph.node("Mul", [query, graph.constant(self._width**-0.5, graph.dtype)])
        scores = graph.node("MatMul", [query, graph.node("Transpose", [keys], perm=[0, 1, 3, 2])])
        scores = graph.node("Add", [scores, mask])
        largest = graph.node("ReduceMax", [scores, graph.constant([-1])], keepdims=1)
        least = graph.node("Sub", [largest, graph.constant(_MOST_LESS, graph.dtype)])
        return graph.node("Softmax", [graph.node("Max", [scores, least])], axis=-1)

    def _write_context(self, weights: str, values: str, node: onnx.NodeProto) -> None:
        """Writes the weighted mean of values [B, H, S, D] where a node of the step writes its own."""
        graph = self.graph
        context = graph.node("Transpose", [graph.node("MatMul", [weights, values])], perm=[0, 2, 1, 3])
        graph.reshape(context, [-1, self._num_heads * self._width], node.output[0])

    def _as_floats(self, cache: str, scale: str) -> str:
        """Returns the rows' caches in the graph's type. Of int8 keys the middle is missing, which softmax ignores."""
        graph = self.graph
        cache = graph.node("Gather", [cache, ALIGNER_INPUTS[1]])
        if not scale:
            return cache
        floats = graph.node("Cast", [cache], to=TensorProto.FLOAT)
        return graph.node("Mul", [floats, graph.reshape(scale, [self._num_heads, 1, self._width])])

    def _recur(self, node: onnx.NodeProto) -> None:
        """Adds an SSRU over all positions in place of one step of it: state = values + gates * (state - values)."""
        graph, (values, kept) = self.graph, node.input
        gates = self._producers[kept].input[0]
        width = self._types[SELF_STATE].shape.dim[-1].dim_value
        rows = [graph.node("Reshape", [each, self._rows_of(width)]) for each in (gates, values)]  # [B, T, M]
        zeros = graph.node("ConstantOfShape", [graph.node("Concat", [self._num_rows, graph.constant(width)], axis=0)])
        states = f"{node.name}.states"
        graph.node_of_many(
            "Scan",
            [zeros, *rows],
            [f"{node.name}.last", states],
            body=_body(width),
            num_scan_inputs=2,
            scan_input_axes=[1, 1],
            scan_output_axes=[1],
        )
        graph.reshape(states, [-1, width], node.output[0])

    def _is_recurrence(self, node: onnx.NodeProto) -> bool:
        """Whether a node adds what an SSRU keeps of its state; see `export.ssru`."""
        kept = self._producers.get(node.input[1]) if node.op_type == "Add" else None
        change = self._producers.get(kept.input[1]) if kept is not None and kept.op_type == "Mul" else None
        return change is not None and change.op_type == "Sub" and change.input[0].startswith(f"{SELF_STATE}.")

    def _retain(self, node: onnx.NodeProto) -> None:
        """Adds retention over all positions in place of one step of it, from a state of zeros."""
        graph, (query, key, value, _, decays) = self.graph, node.input
        width = self._num_heads * self._width
        rows = [graph.node("Reshape", [each, self._rows_of(width)]) for each in (query, key, value)]
        decays = graph.node("Reshape", [decays, self._rows_of(self._num_heads)])
        retained = onnx.NodeProto()
        retained.CopyFrom(node)
        retained.input[:] = [*rows, "", decays]
        graph.nodes.append(retained)

    def of_head(self, head: Head) -> str:
        """Returns a head's weights [B, T - 1, S]: of the step that predicts a token, or of the one that consumes it."""
        graph = self.graph
        weights = self._part(self.weights[head.layer], head.head, 1)
        start, end = (1, np.iinfo(np.int64).max) if head.is_shifted else (0, -1)
        return graph.node("Slice", [weights, *(graph.constant([each]) for each in (start, end, 1))])

    def _part(self, tensor: str, index: int, axis: int) -> str:
        """Returns what has an index on an axis, without that axis."""
        part = self.graph.node("Gather", [tensor, self.graph.constant(index)], axis=axis)
        return self.graph.node("Squeeze", [part, self.graph.constant(axis)])

    def _rows_of(self, *sizes: int) -> str:
        """Returns the shape [B, T, ...] of what the step has as [B * T, ...]."""
        return self.graph.node("Concat", [self._shape, self.graph.constant(sizes)], axis=0)

    def _float_type(self) -> np.dtype[np.generic]:
        elem_type = self._types["cross_key.0"].elem_type
        return helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT if elem_type == TensorProto.INT8 else elem_type)


def _body(width: int) -> onnx.GraphProto:
    """Returns one position of an SSRU, for `Scan`: from its state, gates and values to its new state, twice."""
    shape: list[str | int] = ["rows", width]
    body = Graph("ssru", np.float32)
    state, gates, values = (body.input(name, np.float32, shape) for name in ("state", "gates", "values"))
    kept = body.node("Mul", [gates, body.node("Sub", [state, values])])
    body.node("Add", [values, kept], "new")
    body.node("Identity", ["new"], "all")
    for name in ("new", "all"):
        body.output(name, np.float32, shape)
    return body.build().graph
