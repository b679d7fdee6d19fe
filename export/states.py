"""What a network's decoder step keeps of each row: the table of states, and how a step reads and writes fixed ones."""

import onnx

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


class TwoPlaces:
    """Reads and writes fixed states of two places: those after position p are at p modulo 2.

    The states of a position are computed from those of the position before, and written to another place: what a step
    read is still there, so that it can be taken again. The kernel that writes leaves the rest as it was, in place if
    both tensors are bound to one.

    Args:
        graph: the step.
        past_lengths: int32 [B].

    Attributes:
        has_earlier: bool [B, 1], False where the position is a row's first; then what `read` returns is of no use.
    """

    def __init__(self, graph: Graph, past_lengths: str) -> None:
        self._graph = graph
        past = graph.node("Cast", [past_lengths], to=onnx.TensorProto.INT64)
        places = graph.constant(STATE_PLACES)
        self._place = graph.reshape(graph.node("Mod", [past, places]), [-1, 1])
        before = graph.node("Mod", [graph.node("Add", [past, graph.constant(STATE_PLACES - 1)]), places])
        self._before = graph.reshape(before, [-1, 1])
        self.has_earlier = graph.reshape(graph.node("Greater", [past, graph.constant(0)]), [-1, 1])
        self._places = ""  # int64 [B, 2], once a state is written

    def read(self, state: str) -> str:
        """Adds what gives the state [B, ...] after the position before, of a state [B, 2, ...]."""
        return self._graph.node("GatherND", [state, self._before], batch_dims=1)

    def write(self, state: str, new: str) -> None:
        """Adds the output of a state into which `new` [B, ...] has been written."""
        graph = self._graph
        if not self._places:
            num_rows = graph.node("Squeeze", [graph.node("Shape", [self._place], end=1)])
            rows = graph.node("Range", [graph.constant(0), num_rows, graph.constant(1)])
            self._places = graph.node("Concat", [graph.reshape(rows, [-1, 1]), self._place], axis=1)
        graph.node("ScatterND", [state, self._places, new], f"new_{state}")
