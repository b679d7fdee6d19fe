"""What a network's decoder step keeps of each row: the table of states, and how a step reads and writes fixed ones."""

import onnx
from numpy.typing import DTypeLike

from export.graph import Graph
from model.config import TransformerConfig
from server.bundle.states import STATE_PLACES, State, attention_states, lstm_states, retention_states, ssru_states


def states_of(config: TransformerConfig) -> tuple[State, ...]:
    """Returns the table that the manifest has, and by which the graphs are drawn."""
    if config.family == "one_pass":
        return ()
    if config.family == "recurrent":
        return lstm_states(config.decoder_layers, config.head_dim)
    if config.decoder_mixer == "ssru":
        return ssru_states(config.decoder_layers, config.d_model)
    if config.decoder_mixer == "retention":
        return retention_states(config.decoder_layers, config.num_heads, config.head_dim)
    return attention_states(config.decoder_layers, config.num_heads, config.head_dim, config.self_window)


class FixedStates:
    """Declares the fixed states of a step, and adds what reads and writes them.

    A state has two places: what it is after position p is at p modulo 2. The state of a position is computed from that
    of the position before, and written to the other place: what a step read is still there, so that it can be taken
    again. The kernel that writes leaves the rest as it was, in place if both tensors are bound to one.

    Args:
        graph: the step, which gets the states as inputs.
        config: of the network.
        past_lengths: int32 [B].
        dtype: of the states.

    Attributes:
        has_earlier: bool [B, 1], False where the position is a row's first; then what `read` returns is of no use.
    """

    def __init__(self, graph: Graph, config: TransformerConfig, past_lengths: str, dtype: DTypeLike) -> None:
        self._graph, self._dtype = graph, dtype
        self._states = states_of(config)
        for state in self._states:
            graph.input(state.name, dtype, ["rows", *state.shape])
        past = graph.node("Cast", [past_lengths], to=onnx.TensorProto.INT64)
        places = graph.constant(STATE_PLACES)
        self._place = graph.reshape(graph.node("Mod", [past, places]), [-1, 1])
        before = graph.node("Mod", [graph.node("Add", [past, graph.constant(STATE_PLACES - 1)]), places])
        self._before = graph.reshape(before, [-1, 1])
        self.has_earlier = graph.reshape(graph.node("Greater", [past, graph.constant(0)]), [-1, 1])
        self._places = ""  # int64 [B, 2], once a state is written

    def read(self, index: int = 0) -> str:
        """Adds what gives a state [B, ...] after the position before, the one with this place in the table."""
        return self._graph.node("GatherND", [self._states[index].name, self._before], batch_dims=1)

    def write(self, new: str, index: int = 0) -> None:
        """Adds the output of a state into which `new` [B, ...] has been written."""
        graph, state = self._graph, self._states[index]
        if not self._places:
            num_rows = graph.node("Squeeze", [graph.node("Shape", [self._place], end=1)])
            rows = graph.node("Range", [graph.constant(0), num_rows, graph.constant(1)])
            self._places = graph.node("Concat", [graph.reshape(rows, [-1, 1]), self._place], axis=1)
        written = graph.reshape(new, [-1, *state.shape[1:]])
        graph.node("ScatterND", [state.name, self._places, written], f"new_{state.name}")
        graph.output(f"new_{state.name}", self._dtype, ["rows", *state.shape])
