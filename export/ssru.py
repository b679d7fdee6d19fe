"""The decoder step's SSRUs over states that rows keep, for `export.graphs`."""

import numpy as np
import onnx

from export.graph import Graph
from export.states import FixedStates
from model.config import TransformerConfig
from model.ssru import SimplerSimpleRecurrentUnit
from server.bundle.states import SELF_STATE

_STATE_DTYPE = np.float32


class SSRUStates:
    """Adds one SSRU after the other to a step graph, and last what writes their states.

    At the first position, whatever the row held before, the state is zero.

    Args:
        graph: the step, which gets the states' input.
        config: of the model.
        past_lengths: int32 [B].
    """

    def __init__(self, graph: Graph, config: TransformerConfig, past_lengths: str) -> None:
        self._graph = graph
        num_layers, width = config.decoder_layers, config.d_model
        self._states = FixedStates(graph, config, past_lengths, _STATE_DTYPE)
        self._new: list[str] = []  # of each layer that has been added, [B, M]
        has_earlier = graph.reshape(self._states.has_earlier, [-1, 1, 1])
        earlier = self._states.read()  # [B, L, M]
        earlier = graph.node("Where", [has_earlier, earlier, graph.constant(0, _STATE_DTYPE)])
        earlier = graph.reshape(earlier, [-1, num_layers * width])
        self._earlier = [f"{SELF_STATE}.{i}" for i in range(num_layers)]  # of each layer, [B, M]
        graph.node_of_many("Split", [earlier], self._earlier, axis=1, num_outputs=num_layers)

    def __call__(self, name: str, x: str, unit: SimplerSimpleRecurrentUnit) -> str:
        """Adds the unit of the next layer, from [B, M] to [B, M]."""
        graph = self._graph
        projected = graph.linear(f"{name}.projection", x, unit.projection.weight, unit.projection.bias)
        if graph.dtype != _STATE_DTYPE:
            projected = graph.node("Cast", [projected], to=onnx.TensorProto.FLOAT)
        gates, values = f"{name}.gates", f"{name}.values"
        graph.node_of_many("Split", [projected], [gates, values], axis=1, num_outputs=2)
        change = graph.node("Sub", [self._earlier[len(self._new)], values])
        kept = graph.node("Mul", [graph.node("Sigmoid", [gates]), change])
        self._new.append(graph.node("Add", [values, kept]))
        output = graph.node("Relu", [self._new[-1]])
        if graph.dtype != _STATE_DTYPE:
            output = graph.node("Cast", [output], to=onnx.TensorProto.FLOAT16)
        return output

    def write(self) -> None:
        """Adds the states that all layers leave, once all have been added."""
        self._states.write(self._graph.node("Concat", self._new, axis=1))
