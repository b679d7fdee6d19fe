"""Attention without caches, and the decoder step's two over caches, for `export.graphs`."""

import numpy as np
import onnx

from export.graph import Graph
from export.states import states_of
from model.attention import MultiHeadAttention
from model.config import StackConfig, TransformerConfig
from server.bundle.graphs import SLOT_ROWS


class MutualAttention:
    """Adds one `GroupQueryAttention` after the other in which all positions of a row see each other.

    Args:
        graph: with rows of positions, as [B * S, M].
        stack: of the layers.
        shape: int64 [2], B and S.
        lengths: int32 [B], how many positions of each row count.
    """

    def __init__(self, graph: Graph, stack: StackConfig, shape: str, lengths: str) -> None:
        self._graph = graph
        self._stack = stack
        self._width = stack.num_heads * stack.head_dim
        self._shape = graph.node("Concat", [shape, graph.constant([3 * self._width])], axis=0)
        last = graph.node("Sub", [lengths, graph.constant(1, np.int32)])
        total = graph.node("Slice", [shape, graph.constant([1]), graph.constant([2])])
        self._lengths = [last, graph.node("Cast", [total], to=onnx.TensorProto.INT32)]

    def __call__(self, name: str, x: str, attention: MultiHeadAttention) -> str:
        """Adds the attention of one layer, from [B * S, M] to the context of the same shape."""
        graph = self._graph
        qkv = graph.linear(f"{name}.qkv", x, attention.qkv.weight, attention.qkv.bias)
        context = graph.node_of_many(
            "GroupQueryAttention",
            [graph.node("Reshape", [qkv, self._shape]), "", "", "", "", *self._lengths],
            [f"{name}.context", f"{name}.keys", f"{name}.values"],  # the kernel returns a cache; nobody reads it
            domain="com.microsoft",
            num_heads=self._stack.num_heads,
            kv_num_heads=self._stack.num_heads,
            causal=0,
        )
        return graph.reshape(context, [-1, self._width])


class SelfAttention:
    """Adds one `GroupQueryAttention` after the other to a step graph, each of which writes its position of its caches.

    Args:
        graph: the step, which gets the states' inputs.
        config: of the model.
        past_lengths: int32 [B].
        total: int32 [1], the longest of them and one more.
    """

    def __init__(self, graph: Graph, config: TransformerConfig, past_lengths: str, total: str) -> None:
        self._graph = graph
        self._config = config
        self._lengths = [past_lengths, total]
        self._states = states_of(config)
        self._shape: list[str | int] = ["rows", config.num_heads, "past", config.head_dim]
        for state in self._states:
            graph.input(state.name, graph.dtype, self._shape)

    def __call__(self, name: str, x: str, attention: MultiHeadAttention) -> str:
        """Adds the attention of one layer, from [B, M] to the context [B, M]."""
        graph, config = self._graph, self._config
        qkv = graph.linear(f"{name}.qkv", x, attention.qkv.weight, attention.qkv.bias)
        past, new = (_caches_of(name, kind) for kind in ("self", "new_self"))
        context = graph.node_of_many(
            "GroupQueryAttention",
            [graph.reshape(qkv, [-1, 1, 3 * config.num_heads * config.head_dim]), "", "", *past, *self._lengths],
            [f"{name}.context", *new],
            domain="com.microsoft",
            num_heads=config.num_heads,
            kv_num_heads=config.num_heads,
        )
        return graph.reshape(context, [-1, config.num_heads * config.head_dim])

    def write(self) -> None:
        """Declares the states that all layers leave, once all have been added."""
        for state in self._states:
            for output in state.outputs:
                self._graph.output(output, self._graph.dtype, self._shape)


class CrossAttention:
    """Adds one `GroupQueryAttention` after the other to a step graph.

    Rows that are beams of one sentence may share a slot of the caches, up to `SLOT_ROWS` of them: to the kernel their
    queries are more heads of the same keys. It gives the same bits as slots of their own, but takes time for the
    queries of absent rows too: hence the other form, in which slots are rows.
    """

    def __init__(
        self,
        graph: Graph,
        config: TransformerConfig,
        x: str,
        source_lengths: str,
        source_total: str,
        shares_slots: bool,
    ) -> None:
        """Adds what all layers have in common.

        Args:
            graph: the step, which gets the inputs that say how slots are shared, if they are.
            config: of the model.
            x: any tensor [B, M], to make an empty one of: there are no new keys.
            source_lengths: int32 [slots].
            source_total: int32 [1], the largest of them.
            shares_slots: as in `server.bundle.graphs.StepForm`.
        """
        self._graph = graph
        self._config = config
        self._shares_slots = shares_slots
        self._source_lengths = source_lengths
        self._lengths = [graph.node("Sub", [source_lengths, graph.constant(1, np.int32)]), source_total]
        if shares_slots:
            self._slot_rows = graph.input("slot_rows", np.int64, ["slots", SLOT_ROWS])
            self._row_places = graph.input("row_places", np.int64, ["rows"])
            x = graph.node("Gather", [x, graph.node("Gather", [self._slot_rows, graph.constant(0)], axis=1)])
        self._no_token = no_tokens(graph, x, config.d_model)  # [slots, 0, M]
        if config.num_heads * config.head_dim != config.d_model:
            self._no_token = graph.reshape(self._no_token, [0, 0, config.num_heads * config.head_dim])

    def __call__(self, name: str, x: str, attention: MultiHeadAttention) -> str:
        """Adds the attention of one layer, from [B, M] to the context [B, M].

        It reads caches [slots, H, S, D], and returns them under other names.
        """
        graph, heads, width = self._graph, self._config.num_heads, self._config.head_dim
        weight, bias = attention.qkv.weight[: heads * width], attention.qkv.bias[: heads * width]
        return self.context(name, graph.linear(f"{name}.query", x, weight, bias))

    def context(self, name: str, query: str, **attributes: float) -> str:
        """Adds the attention of queries [B, H * D]; attributes are of the kernel."""
        graph, heads, width = self._graph, self._config.num_heads, self._config.head_dim
        past, new = (_caches_of(name, kind) for kind in ("cross", "new_cross"))
        context = f"{name}.context"  # the same in both forms, which are calibrated as one
        if not self._shares_slots:
            return graph.reshape(self._kernel(context, query, 1, past, new, **attributes), [-1, heads * width])
        queries = graph.reshape(graph.node("Gather", [query, self._slot_rows]), [-1, SLOT_ROWS, heads, width])
        queries = graph.node("Transpose", [queries], perm=[0, 2, 1, 3])  # rows of a slot within each of its heads
        contexts = self._kernel(f"{name}.contexts", queries, SLOT_ROWS, past, new, **attributes)
        contexts = graph.node("Transpose", [graph.reshape(contexts, [-1, heads, SLOT_ROWS, width])], perm=[0, 2, 1, 3])
        return graph.node("Gather", [graph.reshape(contexts, [-1, heads * width]), self._row_places], context)

    def _kernel(
        self, name: str, queries: str, num_rows: int, past: list[str], new: list[str], **attributes: float
    ) -> str:
        config = self._config
        return self._graph.node_of_many(
            "GroupQueryAttention",
            [
                self._graph.reshape(queries, [-1, 1, num_rows * config.num_heads * config.head_dim]),
                self._no_token,
                self._no_token,
                *past,
                *self._lengths,
            ],
            [name, *new],
            domain="com.microsoft",
            num_heads=num_rows * config.num_heads,
            kv_num_heads=config.num_heads,
            **attributes,
        )


def no_tokens(graph: Graph, x: str, width: int) -> str:
    """Adds an empty tensor [B, 0, width] for [B, width]: the new keys of a kernel that only reads a cache."""
    one_token = graph.reshape(x, [-1, 1, width])
    start, end, axis = (graph.constant([value]) for value in (0, 0, 1))
    return graph.node("Slice", [one_token, start, end, axis])


def _caches_of(name: str, kind: str) -> list[str]:
    """Returns the names of the caches of the layer that an attention is named for, such as "decoder.3.self"."""
    layer = name.split(".")[1]
    return [f"{kind}_{part}.{layer}" for part in ("key", "value")]
