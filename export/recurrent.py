"""What a decoder step keeps of a row in vectors, for `export.graphs` and `export.rnn`; and its SSRUs."""

import numpy as np
import onnx

from export.graph import Graph
from export.states import states_of
from model.config import TransformerConfig
from model.recurrent import SimplerSimpleRecurrentUnit
from server.bundle.states import SELF_STATE, STATE_PLACES

STATE_DTYPE = np.float32


class StateVectors:
    """Adds what reads the vectors of each row that the step before has left, and what writes those of this one.

    The vectors of a position are written to another place than those of the position before: what a step read is still
    there, so that it can be taken again. The kernel that writes leaves the rest as it was, in place if both tensors are
    bound to one. At the first position the vectors are what the row held before, so the caller replaces them.

    Args:
        graph: the step, which gets the states' input.
        config: of the model.
        past_lengths: int32 [B].

    Attributes:
        past: int64 [B].
        earlier: float32 [B, vectors, width].
    """

    def __init__(self, graph: Graph, config: TransformerConfig, past_lengths: str) -> None:
        self._graph = graph
        (state,) = states_of(config)
        _, self._num_vectors, self._width = state.shape
        self._shape: list[str | int] = ["rows", *state.shape]
        self._states = graph.input(SELF_STATE, STATE_DTYPE, self._shape)
        self.past = graph.node("Cast", [past_lengths], to=onnx.TensorProto.INT64)
        places = graph.constant(STATE_PLACES)
        self._place = graph.reshape(graph.node("Mod", [self.past, places]), [-1, 1])
        before = graph.node("Mod", [graph.node("Add", [self.past, graph.constant(STATE_PLACES - 1)]), places])
        self.earlier = graph.node("GatherND", [self._states, graph.reshape(before, [-1, 1])], batch_dims=1)

    def split(self, vectors: str) -> list[str]:
        """Returns the vectors [B, width] of a tensor as `earlier`."""
        names = [f"{SELF_STATE}.{i}" for i in range(self._num_vectors)]
        flat = self._graph.reshape(vectors, [-1, self._num_vectors * self._width])
        self._graph.node_of_many("Split", [flat], names, axis=1, num_outputs=self._num_vectors)
        return names

    def write(self, vectors: list[str]) -> None:
        """Adds the vectors [B, width] that the step leaves, and declares the states' output."""
        graph = self._graph
        new = graph.reshape(graph.node("Concat", vectors, axis=1), [-1, self._num_vectors, self._width])
        num_rows = graph.node("Squeeze", [graph.node("Shape", [self._place], end=1)])
        rows = graph.node("Range", [graph.constant(0), num_rows, graph.constant(1)])
        places = graph.node("Concat", [graph.reshape(rows, [-1, 1]), self._place], axis=1)  # [B, 2]
        graph.node("ScatterND", [self._states, places, new], f"new_{SELF_STATE}")
        graph.output(f"new_{SELF_STATE}", STATE_DTYPE, self._shape)


class RecurrentStates:
    """Adds one SSRU after the other to a step graph, and last what writes their states, which are zero at first.

    Args:
        graph: the step, which gets the states' input.
        config: of the model.
        past_lengths: int32 [B].
    """

    def __init__(self, graph: Graph, config: TransformerConfig, past_lengths: str) -> None:
        self._graph = graph
        self._vectors = StateVectors(graph, config, past_lengths)
        has_earlier = graph.node("Greater", [self._vectors.past, graph.constant(0)])
        has_earlier = graph.reshape(has_earlier, [-1, 1, 1])
        zero = graph.constant(0, STATE_DTYPE)
        self._earlier = self._vectors.split(graph.node("Where", [has_earlier, self._vectors.earlier, zero]))
        self._new: list[str] = []  # of each layer, [B, M]

    def __call__(self, name: str, x: str, unit: SimplerSimpleRecurrentUnit) -> str:
        """Adds the unit of the next layer, from [B, M] to [B, M]."""
        graph = self._graph
        projected = graph.linear(f"{name}.projection", x, unit.projection.weight, unit.projection.bias)
        if graph.dtype != STATE_DTYPE:
            projected = graph.node("Cast", [projected], to=onnx.TensorProto.FLOAT)
        gates, values = f"{name}.gates", f"{name}.values"
        graph.node_of_many("Split", [projected], [gates, values], axis=1, num_outputs=2)
        change = graph.node("Sub", [self._earlier[len(self._new)], values])
        kept = graph.node("Mul", [graph.node("Sigmoid", [gates]), change])
        self._new.append(graph.node("Add", [values, kept]))
        output = graph.node("Relu", [self._new[-1]])
        if graph.dtype != STATE_DTYPE:
            output = graph.node("Cast", [output], to=onnx.TensorProto.FLOAT16)
        return output

    def write(self) -> None:
        """Adds the states that all layers leave, once all have been added."""
        self._vectors.write(self._new)
