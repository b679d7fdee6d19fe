"""The decoder step's attention over the last tokens of a row, which a ring holds, for `export.graphs`."""

import dataclasses

import numpy as np
import onnx

from export.attention import no_tokens
from export.graph import Graph
from export.states import states_of
from model.attention import MultiHeadAttention
from model.checkpoint import Checkpoint
from model.config import TransformerConfig


class WindowAttention:
    """Adds one `GroupQueryAttention` after the other to a step graph, each over a ring of `self_window` positions.

    The key and the value of position p are written to place p modulo the window. They take the place of those of the
    position that has just left the window, so nothing that the step reads is lost, and it can be taken again. In which
    order the places are does not matter to attention, because positions are part of the embeddings. A ring need not be
    longer than the longest row.

    The kernel has a window of its own, `sliding_window_cache`. It is about as fast, but it moves what it keeps, so a
    step that is taken twice loses a position.

    Args:
        graph: the step, which gets the states' inputs.
        config: of the model.
        past_lengths: int32 [B].
    """

    def __init__(self, graph: Graph, config: TransformerConfig, past_lengths: str) -> None:
        self._graph = graph
        self._config = config
        self._states = states_of(config)
        self._shape: list[str | int] = ["rows", config.num_heads, "past", config.head_dim]
        for state in self._states:
            graph.input(state.name, graph.dtype, self._shape)
        past = graph.node("Cast", [past_lengths], to=onnx.TensorProto.INT64)
        places = graph.node("Mod", [past, graph.constant(config.self_window)])
        num_rows = graph.node("Shape", [past_lengths])  # [1]
        rows = graph.node("Range", [graph.constant(0), graph.node("Squeeze", [num_rows]), graph.constant(1)])
        heads = graph.constant(np.arange(config.num_heads)[None, :, None])
        shape = graph.node("Concat", [num_rows, graph.constant([config.num_heads, 1])], axis=0)
        rows, heads, places = (
            graph.node("Expand", [index, shape])
            for index in (graph.reshape(rows, [-1, 1, 1]), heads, graph.reshape(places, [-1, 1, 1]))
        )
        self._vectors = graph.node("Concat", [rows, heads, places], axis=2)  # [B, H, 3]
        last = graph.node("Min", [past_lengths, graph.constant([config.self_window - 1], np.int32)])
        capacity = graph.node("Shape", [self._states[0].name], start=2, end=3)
        self._lengths = [last, graph.node("Cast", [capacity], to=onnx.TensorProto.INT32)]
        self._no_token = ""  # [B, 0, H * D], once there is a layer

    def __call__(self, name: str, x: str, attention: MultiHeadAttention) -> str:
        """Adds the attention of one layer, from [B, M] to the context [B, M]."""
        graph, config, width = self._graph, self._config, attention.width
        qkv = graph.linear(f"{name}.qkv", x, attention.qkv.weight, attention.qkv.bias)
        parts = query, *new = [f"{name}.{part}" for part in ("query", "key", "value")]
        graph.node_of_many("Split", [qkv], parts, axis=1, num_outputs=3)
        layer = name.split(".")[1]
        rings = [f"self_{part}.{layer}" for part in ("key", "value")]
        written = [self._write(*each) for each in zip(rings, new, strict=True)]
        self._no_token = self._no_token or no_tokens(graph, query, width)
        context = graph.node_of_many(
            "GroupQueryAttention",
            [graph.reshape(query, [-1, 1, width]), *[self._no_token] * 2, *written, *self._lengths],
            [f"{name}.context", *(f"new_{ring}" for ring in rings)],
            domain="com.microsoft",
            num_heads=config.num_heads,
            kv_num_heads=config.num_heads,
        )
        return graph.reshape(context, [-1, width])

    def write(self) -> None:
        """Declares the states that all layers leave, once all have been added."""
        for state in self._states:
            for output in state.outputs:
                self._graph.output(output, self._graph.dtype, self._shape)

    def _write(self, ring: str, vectors: str) -> str:
        """Adds what puts a key or value [B, H * D] of each row into its ring, in place if both are bound to one."""
        graph, config = self._graph, self._config
        vectors = graph.reshape(vectors, [-1, config.num_heads, config.head_dim])
        return graph.node("ScatterND", [ring, self._vectors, vectors], f"written_{ring}")


def with_window(checkpoint: Checkpoint, window: int) -> Checkpoint:
    """Returns a trained model whose decoder attends to the last `window` target tokens only, or to all with 0.

    The recipe in the facts says so too, since a bundle is drawn again by it.

    Raises:
        ValueError: the window is not in 0..max_positions, or the decoder has no attention to the target.
    """
    config = dataclasses.replace(checkpoint.config, self_window=window)
    recipe = checkpoint.facts.get("recipe", {})
    changed = {**recipe, "model": {**recipe.get("model", {}), "self_window": window}}
    return dataclasses.replace(
        checkpoint, config=config, facts={**checkpoint.facts, "recipe": changed} if recipe else checkpoint.facts
    )
