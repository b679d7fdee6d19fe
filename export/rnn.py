"""A recurrent network's encoder and decoder step as nodes, for `export.graphs`; see `model.rnn`.

Of each source token the step reads one key, with which the decoder's state is compared, and one value, the encoder's
state. A network without attention reads only the two values of a sentence with which the decoder begins.
"""

import numpy as np
import onnx
import torch

from export.attention import CrossAttention
from export.caches import READ
from export.embedding import source_tokens, target_tokens
from export.graph import Graph
from export.states import FixedStates
from model.rnn import Attention, BidirectionalLSTM, Decoder, RecurrentNetwork
from server.bundle.graphs import SLOT_ROWS
from server.bundle.states import SELF_STATE

KEY, VALUE = "cross_key.0", "cross_value.0"


def draw_source(graph: Graph, model: RecurrentNetwork, ids: str, lengths: str) -> None:
    """Adds the encoder, from ids int64 [B, S] and lengths int32 [B] to both caches [B, 1, S, W]."""
    width = model.config.head_dim
    x = graph.node("Transpose", [source_tokens(graph, model, ids)], perm=[1, 0, 2])  # [S, B, M]
    for i, layer in enumerate(model.encoder):
        states = _both_directions(graph, f"encoder.{i}", x, layer, lengths)
        x = graph.reshape(graph.node("Transpose", [states], perm=[0, 2, 1, 3]), [0, 0, width])
    memory = graph.reshape(graph.node("Transpose", [x], perm=[1, 0, 2]), [-1, width])
    memory = graph.node("Identity", [memory], "encoder.output")  # by rows, as int8 is calibrated
    batch = graph.node("Shape", [ids])
    rows, length = (graph.node("Slice", [batch, graph.constant([i]), graph.constant([i + 1])]) for i in (0, 1))
    shape = graph.node("Concat", [rows, graph.constant([1]), length, graph.constant([width])], axis=0)
    attention = model.decoder.attention
    if attention is not None and isinstance(attention.key, torch.nn.Linear):
        bias = attention.key.bias if attention.is_additive else torch.zeros(width)
        keys = graph.linear("decoder.0.cross.key", memory, attention.key.weight, bias)
    else:
        keys = graph.node("Identity", [memory], "decoder.0.cross.key")
    values = graph.node("Identity", [memory], "decoder.0.cross.value")
    for name, x in ((KEY, keys), (VALUE, values)):
        graph.node("Reshape", [x, shape], name)
        graph.output(name, graph.dtype, ["rows", 1, "source", width])


def _both_directions(graph: Graph, name: str, x: str, layer: BidirectionalLSTM, lengths: str) -> str:
    """Adds an LSTM from [S, B, I] to the states [S, 2, B, W / 2]."""
    lstms = [{each: weight.detach() for each, weight in lstm.named_parameters()} for lstm in layer.children()]
    weights = [torch.stack([_gates(lstm[f"weight_{side}_l0"]) for lstm in lstms]) for side in ("ih", "hh")]
    biases = torch.stack([torch.cat([_gates(lstm[f"bias_{side}_l0"]) for side in ("ih", "hh")]) for lstm in lstms])
    tensors = zip(("input", "hidden", "bias"), (*weights, biases), strict=True)
    inputs = [x, *(graph.weight(f"{name}.lstm.{part}", tensor) for part, tensor in tensors), lengths]
    hidden_size = weights[1].shape[-1]
    return graph.node("LSTM", inputs, f"{name}.lstm", hidden_size=hidden_size, direction="bidirectional")


def _gates(weight: torch.Tensor) -> torch.Tensor:
    """Returns torch's gates (input, forget, cell, output) in the order of ONNX."""
    into, forget, cell, out = weight.chunk(4)
    return torch.cat([into, out, forget, cell])


class RecurrentStep:
    """Adds a decoder's LSTMs and its attention to a step graph, and last what writes their states.

    Args:
        graph: the step, which has the caches as inputs and gets the states' input.
        model: of which the decoder is.
        past_lengths: int32 [B].
        source_lengths: int32 [slots].
        source_total: int32 [1], the largest of them.
        shares_slots: as in `server.bundle.graphs.StepForm`.
    """

    def __init__(
        self,
        graph: Graph,
        model: RecurrentNetwork,
        past_lengths: str,
        source_lengths: str,
        source_total: str,
        shares_slots: bool,
    ) -> None:
        self._graph, self._model, self._config = graph, model, model.config
        self._states = FixedStates(graph, model.config, past_lengths, graph.dtype)
        self._lengths, self._total = source_lengths, source_total
        self._shares_slots = shares_slots
        self._new: list[str] = []  # of each layer the hidden state and the cell, [B, W]

    def __call__(self, ids: str) -> str:
        """Adds the step from ids int64 [B] to the attentional vectors [B, M].

        A tensor that a Gemm multiplies has the same name in all forms of the step, so that one calibration serves all.
        """
        graph, decoder = self._graph, self._model.decoder
        x = target_tokens(graph, self._model, ids)
        source = SourceCaches(graph, self._config, x, self._lengths, self._total, self._shares_slots)
        num_vectors, width = 2 * len(decoder.layers), self._config.head_dim
        earlier = [f"{SELF_STATE}.{i}" for i in range(num_vectors)]
        begun = graph.reshape(self._begun(source, decoder), [-1, num_vectors * width])
        graph.node_of_many("Split", [begun], earlier, axis=1, num_outputs=num_vectors)
        for i, lstm in enumerate(decoder.layers):
            x, cell = self._cell(f"decoder.{i}.lstm", x, lstm, earlier[2 * i], earlier[2 * i + 1])
            self._new += [x, cell]
        if decoder.attention is None:
            for name in (KEY, VALUE):
                graph.node("Identity", [name], f"new_{name}")
        else:
            x = graph.node("Concat", [source.attend(x, decoder.attention), x], "decoder.combined", axis=1)
        combined = graph.linear("decoder.combination", x, decoder.combination.weight, decoder.combination.bias)
        return graph.node("Tanh", [combined], "decoder.output")

    def write(self) -> None:
        """Adds the states that all layers leave."""
        self._states.write(self._graph.node("Concat", self._new, axis=1))

    def _begun(self, source: "SourceCaches", decoder: Decoder) -> str:
        """Returns the vectors that the step begins with, [B, 2 * L, W]: earlier ones, or for new rows the bridge's."""
        graph, width = self._graph, self._config.head_dim
        is_new = graph.node("Not", [graph.reshape(self._states.has_earlier, [-1])])
        rows = graph.node("Transpose", [graph.node("NonZero", [is_new])], perm=[1, 0])  # [new, 1]
        ends = source.ends(rows)
        # MatMul, because int8 replaces each Gemm. A sentence needs this once, so its time does not matter.
        matrix = graph.weight("decoder.bridge.weight", decoder.bridge.weight.T)
        starts = graph.node("MatMul", [ends, matrix])
        starts = graph.node("Add", [starts, graph.weight("decoder.bridge.bias", decoder.bridge.bias)])
        starts = graph.reshape(starts, [-1, 2 * len(decoder.layers), width])
        return graph.node("ScatterND", [self._states.read(), rows, starts])

    def _cell(self, name: str, x: str, lstm: torch.nn.LSTM, hidden: str, cell: str) -> tuple[str, str]:
        """Adds one LSTM; returns its new hidden state and cell."""
        graph, weights = self._graph, dict(lstm.named_parameters())
        # The name is its own, so that int8 has a range of its own for it.
        hidden = graph.node("Identity", [hidden], f"{name}.earlier")
        sums = [
            graph.linear(f"{name}.{part}", tensor, weights[f"weight_{part}_l0"], weights[f"bias_{part}_l0"])
            for part, tensor in (("ih", x), ("hh", hidden))
        ]
        gates = [f"{name}.{gate}" for gate in ("into", "forget", "value", "out")]
        graph.node_of_many("Split", [graph.node("Add", sums)], gates, axis=1, num_outputs=4)
        into, forget, out = (graph.node("Sigmoid", [gates[i]]) for i in (0, 1, 3))
        added = graph.node("Mul", [into, graph.node("Tanh", [gates[2]])])
        cell = graph.node("Add", [graph.node("Mul", [forget, cell]), added])
        return graph.node("Mul", [out, graph.node("Tanh", [cell])], f"{name}.hidden"), cell


class SourceCaches(CrossAttention):
    """What a step reads of the source: attention to the caches, and the encoder's ends."""

    def ends(self, rows: str) -> str:
        """Returns the last states of both directions, [new, W], of the sentences of new rows [new, 1]."""
        graph, half = self._graph, self._config.head_dim // 2
        slots = rows
        if self._shares_slots:
            place = graph.node("Gather", [self._row_places, graph.reshape(rows, [-1])])
            slots = graph.reshape(graph.node("Div", [place, graph.constant(SLOT_ROWS)]), [-1, 1])
        lengths = graph.node("Cast", [graph.node("GatherND", [self._source_lengths, slots])], to=onnx.TensorProto.INT64)
        last = graph.reshape(graph.node("Sub", [lengths, graph.constant(1)]), [-1, 1])
        first = graph.node("Sub", [last, last])
        states = []
        for name, position, start in (("last", last, 0), ("first", first, half)):
            place = graph.node("Concat", [slots, first, position], axis=1)
            state = graph.node("Identity", [graph.node("GatherND", [VALUE, place])], f"{VALUE}.{name}{READ}")
            bounds = [graph.constant([bound]) for bound in (start, start + half, 1)]
            states.append(graph.node("Slice", [state, *bounds]))
        return graph.node("Concat", states, axis=1)

    def attend(self, x: str, attention: Attention) -> str:
        """Adds the attention, from the last layer's hidden state [B, W] to the context [B, W]."""
        if not attention.is_additive:
            return self.context("decoder.0.cross", x, scale=1.0)
        for name in (KEY, VALUE):
            self._graph.node("Identity", [name], f"new_{name}")
        query = self._graph.linear(
            "decoder.0.cross.query", x, attention.query.weight, torch.zeros(self._config.head_dim)
        )
        return self._additive(query, attention)

    def _additive(self, query: str, attention: Attention) -> str:
        graph, width = self._graph, self._config.head_dim
        keys, values = (graph.node("Identity", [name], f"{name}.all{READ}") for name in (KEY, VALUE))
        num_rows = SLOT_ROWS if self._shares_slots else 1
        queries = graph.node("Gather", [query, self._slot_rows]) if self._shares_slots else query
        queries = graph.reshape(queries, [-1, num_rows, 1, width])
        sums = graph.node("Tanh", [graph.node("Add", [queries, keys])])  # [slots, rows, S, W]
        energy = graph.weight("decoder.0.cross.energy", attention.energy[:, None])
        scores = graph.node("MatMul", [sums, energy])  # [slots, rows, S, 1]
        weights = graph.node("Softmax", [graph.node("Where", [self._is_token(keys), scores, _nothing(graph)])], axis=2)
        contexts = graph.node("MatMul", [graph.node("Transpose", [weights], perm=[0, 1, 3, 2]), values])
        contexts = graph.reshape(contexts, [-1, width])
        return graph.node("Gather", [contexts, self._row_places]) if self._shares_slots else contexts

    def _is_token(self, keys: str) -> str:
        """Returns which positions of the caches are of the sentence, bool [slots, 1, S, 1]; others have old values."""
        graph = self._graph
        length = graph.node("Squeeze", [graph.node("Shape", [keys], start=2, end=3)])
        positions = graph.node("Range", [graph.constant(0), length, graph.constant(1)])
        positions = graph.node("Cast", [positions], to=onnx.TensorProto.INT32)
        inside = graph.node("Less", [positions, graph.reshape(self._source_lengths, [-1, 1])])
        return graph.node("Unsqueeze", [inside, graph.constant([1, 3])])


def _nothing(graph: Graph) -> str:
    return graph.constant(-np.inf, np.float32)
