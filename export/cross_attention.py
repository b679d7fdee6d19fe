"""The decoder step's attention over encoded sentences, for `export.graphs`."""

from typing import Any

import numpy as np

from export.graph import Graph
from model.config import TransformerConfig
from server.slots import SLOT_ROWS


class CrossAttention:
    """Adds one `GroupQueryAttention` after the other to a step graph.

    On CPUs rows that are beams of one sentence share a slot of the caches, up to `SLOT_ROWS` of them: to the kernel
    their queries are more heads of the same keys. That is one branch. The other is for steps in which each row has a
    slot of its own, where the queries of absent rows would take time. Both give the same bits. Graphs for CUDA (half
    precision) are captured and cannot branch: each row has its slot there.
    """

    def __init__(self, graph: Graph, config: TransformerConfig, x: str, source_lengths: str, source_total: str) -> None:
        """Adds what all layers have in common.

        Args:
            graph: the step, which gets the inputs that say how slots are shared.
            config: of the model.
            x: any tensor [B, M], to make an empty one of: there are no new keys.
            source_lengths: int32 [slots].
            source_total: int32 [1], the largest of them.
        """
        self._graph = graph
        self._config = config
        self._lengths = [graph.node("Sub", [source_lengths, graph.constant(1, np.int32)]), source_total]
        self._has_slots = graph.dtype == np.float32
        if self._has_slots:
            self._slot_rows = graph.input("slot_rows", np.int64, ["slots", SLOT_ROWS])
            self._row_places = graph.input("row_places", np.int64, ["rows"])
            self._has_shared_slots = graph.input("has_shared_slots", np.bool_, [1])
            x = graph.node("Gather", [x, graph.node("Gather", [self._slot_rows, graph.constant(0)], axis=1)])
        one_token = graph.reshape(x, [-1, 1, config.d_model])
        start, end, axis = (graph.constant([value]) for value in (0, 0, 1))
        self._no_token = graph.node("Slice", [one_token, start, end, axis])  # [slots, 0, M]

    def attend(self, name: str, query: str, past: list[str], new: list[str]) -> str:
        """Adds the attention of one layer.

        Args:
            name: of the layer's attention.
            query: [B, M].
            past: names of the caches that are read, keys and values [slots, H, S, D].
            new: names under which they are returned.

        Returns:
            The context, [B, M].
        """
        if not self._has_slots:
            return self._attend_apart(self._graph, name, query, past, new)
        config = self._config
        branches: dict[str, Any] = {}
        for branch, attend in (("then_branch", self._attend_shared), ("else_branch", self._attend_apart)):
            graph = Graph(f"{name}.{branch}", self._graph.dtype)
            caches = [f"{graph.name}.{cache}" for cache in new]
            graph.output(attend(graph, graph.name, query, past, caches), graph.dtype, ["rows", config.d_model])
            for cache in caches:
                graph.output(cache, graph.dtype, ["slots", config.num_heads, "source", config.head_dim])
            branches[branch] = graph.build().graph
        return self._graph.node_of_many("If", [self._has_shared_slots], [f"{name}.context", *new], **branches)

    def _attend_shared(self, graph: Graph, name: str, query: str, past: list[str], new: list[str]) -> str:
        heads, width = self._config.num_heads, self._config.head_dim
        queries = self._reshape(graph, graph.node("Gather", [query, self._slot_rows]), -1, SLOT_ROWS, heads, width)
        queries = graph.node("Transpose", [queries], perm=[0, 2, 1, 3])
        contexts = self._kernel(graph, name, queries, SLOT_ROWS, past, new)
        contexts = self._reshape(graph, contexts, -1, heads, SLOT_ROWS, width)
        contexts = graph.node("Transpose", [contexts], perm=[0, 2, 1, 3])
        return graph.node("Gather", [self._reshape(graph, contexts, -1, self._config.d_model), self._row_places])

    def _attend_apart(self, graph: Graph, name: str, query: str, past: list[str], new: list[str]) -> str:
        context = self._kernel(graph, name, query, 1, past, new)
        return self._reshape(graph, context, -1, self._config.d_model)

    def _kernel(self, graph: Graph, name: str, queries: str, num_rows: int, past: list[str], new: list[str]) -> str:
        """Adds the operator; heads are in the order of the cache's, and of the rows of a slot within each of them."""
        config = self._config
        queries = self._reshape(graph, queries, -1, 1, num_rows * config.d_model)
        return graph.node_of_many(
            "GroupQueryAttention",
            [queries, self._no_token, self._no_token, *past, *self._lengths],
            [f"{name}.attended", *new],
            domain="com.microsoft",
            num_heads=num_rows * config.num_heads,
            kv_num_heads=config.num_heads,
        )

    def _reshape(self, graph: Graph, x: str, *shape: int) -> str:
        """Adds a Reshape; the shape is a constant of the step, which its branches see."""
        return graph.node("Reshape", [x, self._graph.constant(list(shape))])
