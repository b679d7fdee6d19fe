"""The decoder step's retention over states that rows keep, for `export.graphs`."""

import numpy as np
import onnx

from export.graph import Graph
from export.states import FixedStates
from model.config import TransformerConfig
from model.retention import NORM_EPS, Retention, decays

_DTYPE = np.float32  # of states, and of what is computed with them
_NOTHING = -1e4  # as the logarithm of what is left of a state


class RetentionStates:
    """Adds one `LinearAttention` after the other to a step graph, each of which reads its layer's state and writes it.

    At the first position nothing is left of what the row held before.

    Args:
        graph: the step, which gets the states' inputs.
        config: of the model.
        past_lengths: int32 [B].
    """

    def __init__(self, graph: Graph, config: TransformerConfig, past_lengths: str) -> None:
        self._graph = graph
        self._heads, self._width = config.num_heads, config.head_dim
        self._states = FixedStates(graph, config, past_lengths, _DTYPE)
        self._new: list[str] = []  # of each layer that has been added, [B, H, D, D]
        kept = graph.constant(decays(self._heads).numpy(), _DTYPE)
        left = graph.node("Where", [self._states.has_earlier, kept, graph.constant(_NOTHING, _DTYPE)])  # [B, H]
        self._decays = graph.reshape(left, [-1, 1, self._heads])

    def __call__(self, name: str, x: str, retention: Retention) -> str:
        """Adds the retention of one layer, from [B, M] to [B, M]."""
        graph, width = self._graph, self._heads * self._width
        qkv = self._as(graph.linear(f"{name}.qkv", x, retention.qkv.weight, retention.qkv.bias), _DTYPE)
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        graph.node_of_many("Split", [qkv], parts, axis=1, num_outputs=3)
        earlier = graph.reshape(self._states.read(len(self._new)), [-1, self._heads, self._width, self._width])
        new = f"{name}.state"
        read = graph.node_of_many(
            "LinearAttention",
            [*(graph.reshape(part, [-1, 1, width]) for part in parts), earlier, self._decays],
            [f"{name}.read", new],
            domain="com.microsoft",
            update_rule="gated",
            q_num_heads=self._heads,
            kv_num_heads=self._heads,
        )
        self._new.append(new)
        ones = graph.constant(np.ones(self._width), _DTYPE)
        heads = graph.reshape(read, [-1, self._width])
        normal = graph.node("LayerNormalization", [heads, ones], axis=-1, epsilon=NORM_EPS)
        gate = graph.linear(f"{name}.gate", x, retention.gate.weight, retention.gate.bias)
        gate = graph.node("QuickGelu", [gate], domain="com.microsoft", alpha=1.0)  # x * sigmoid(x)
        joined = graph.node("Mul", [self._as(graph.reshape(normal, [-1, width]), graph.dtype), gate], f"{name}.context")
        return graph.linear(f"{name}.output", joined, retention.output.weight, retention.output.bias)

    def write(self) -> None:
        """Adds the states that all layers leave, once all have been added."""
        for index, new in enumerate(self._new):
            self._states.write(new, index)

    def _as(self, tensor: str, dtype: "np.dtype[np.generic] | type[np.generic]") -> str:
        if self._graph.dtype == _DTYPE:
            return tensor
        to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self._graph.node("Cast", [tensor], to=to)
