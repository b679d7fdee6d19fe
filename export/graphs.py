"""The encoder and the KV-cached decoder step as ONNX graphs, built from a trained model.

Both attentions of the step are `com.microsoft.GroupQueryAttention`, which takes a length per row, or per slot that rows
share (no mask tensors), and writes the cache in place. The graphs are built node by node rather than traced: the
operators are the point here, and this is the shorter way to say which. Activations are two-dimensional, [rows, M], but
for the attention operators, so that every linear map is one `Gemm`, which `export.quantize` replaces for int8.

The step also returns the cross-attention caches that it only reads, for whoever runs it to bind to the same memory:
kernels for CUDA and for caches of int8 demand it, and the other graphs do as they do. In place of self-attention there
may be SSRUs, see `export.ssru`, retention, see `export.retention`, or attention over the last tokens only, see
`export.window`.
"""

from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import DTypeLike

from export.attention import CrossAttention, MutualAttention, SelfAttention
from export.embedding import embed_source, embed_target
from export.graph import Graph
from export.projection import choose_among_all, choose_among_candidates
from export.retention import RetentionStates
from export.rnn import RecurrentStep, draw_source
from export.ssru import SSRUStates
from export.states import states_of
from export.window import WindowAttention
from model.attention import MultiHeadAttention
from model.config import Activation, TransformerConfig
from model.rnn import RecurrentNetwork
from model.search import Stepwise
from model.transformer import QUICK_GELU, Layer, LayeredNetwork, Transformer
from server.bundle.graphs import PLAIN_STEP, StepForm, cache_names


def encoder_graph(model: Stepwise, dtype: DTypeLike = np.float32) -> onnx.ModelProto:
    """Builds `source_ids` [B, S], `source_lengths` [B] -> `cross_key.{i}`, `cross_value.{i}` [B, H, S, D].

    What pads `source_ids` behind a row's length does not matter.
    """
    return draw_encoder(model, dtype).build()


def draw_encoder(model: Stepwise, dtype: DTypeLike = np.float32) -> Graph:
    """Draws what `encoder_graph` builds; in float32 its initializers are views of the model's weights."""
    graph = Graph("encoder", dtype)
    ids = graph.input("source_ids", np.int64, ["rows", "source"])
    lengths = graph.input("source_lengths", np.int32, ["rows"])
    if isinstance(model, RecurrentNetwork):
        draw_source(graph, model, ids, lengths)
    else:
        _draw_source(graph, model, ids, lengths)
    return graph


def _draw_source(graph: Graph, model: Transformer, ids: str, lengths: str) -> None:
    config = model.config
    shape = graph.node("Shape", [ids])
    split_shape = graph.node("Concat", [shape, graph.constant([config.num_heads, config.head_dim])], axis=0)
    x = encode(graph, model, ids, shape, lengths)
    for i, layer in enumerate(model.decoder):
        _, *weights = layer.cross_attention.qkv.weight.chunk(3)
        _, *biases = layer.cross_attention.qkv.bias.chunk(3)
        for part, weight, bias in zip(("key", "value"), weights, biases, strict=True):
            projected = graph.linear(f"decoder.{i}.cross.{part}", x, weight, bias)
            heads = graph.node("Reshape", [projected, split_shape])  # [B, S, H, D]
            graph.node("Transpose", [heads], f"cross_{part}.{i}", perm=[0, 2, 1, 3])
            graph.output(f"cross_{part}.{i}", graph.dtype, ["rows", config.num_heads, "source", config.head_dim])


def encode(graph: Graph, model: LayeredNetwork, ids: str, shape: str, lengths: str) -> str:
    """Adds the encoder, from ids int64 [B, S], their shape and int32 lengths [B], to its output [B * S, M]."""
    stack = model.config.encoder
    length = graph.node("Slice", [shape, graph.constant([1]), graph.constant([2])])
    attend = MutualAttention(graph, stack, shape, lengths)
    x = graph.reshape(embed_source(graph, model, ids, length), [-1, model.config.d_model])
    for i, layer in enumerate(model.encoder):
        x = draw_layer(graph, f"encoder.{i}", x, layer, attend, None)
    return graph.layer_norm("encoder.norm", x, model.encoder_norm) if stack.has_final_norm else x


def step_graph(model: Stepwise, dtype: DTypeLike = np.float32, form: StepForm = PLAIN_STEP) -> onnx.ModelProto:
    """Builds one decoder step over B rows with a token each; `server.network.Decoder.step` says what goes in and out.

    Its controls are `input_ids` int64 [B], `past_lengths` int32 [B], `source_lengths` int32 [slots], and in host memory
    `self_total` = longest past + 1, `source_total` = longest source, `top_k` (at most `MAX_TOP_K` and V), and
    `with_log_probs`: unless it holds, `top_log_probs` are logits (but in half precision), which spares greedy search
    the softmax. It returns `top_ids`, `top_log_probs` [B, k], and `logits` float32 [B, V] for who asks for them.

    Slots are rows, unless the form is to share them: then there are also `slot_rows` int64 [slots, `SLOT_ROWS`], as in
    `server.runtime.slots`, and `row_places` int64 [B], the place of each row among them.

    With a shortlist the output projection is the input `shortlist_weight` [n / `COLUMNS`, `COLUMNS`, M], of tokens
    `shortlist_ids` int64 [n], of which a row may choose those at the indices in `candidates` int32 [B, m], -1 being
    none; m is a multiple of `CANDIDATES`. Instead of logits it returns `products` float32 [n / `COLUMNS`, `COLUMNS`,
    B], which are logits but for a scale of each column in int8.
    """
    return draw_step(model, dtype, form).build()


def draw_step(model: Stepwise, dtype: DTypeLike = np.float32, form: StepForm = PLAIN_STEP) -> Graph:
    """Draws what `step_graph` builds; in float32 its initializers are views of the model's weights."""
    config = model.config
    graph = Graph("decoder_step", dtype)
    ids = graph.input("input_ids", np.int64, ["rows"])
    past_lengths = graph.input("past_lengths", np.int32, ["rows"])
    source_lengths = graph.input("source_lengths", np.int32, ["slots"])
    self_total = graph.input("self_total", np.int32, [1])
    source_total = graph.input("source_total", np.int32, [1])
    top_k = graph.input("top_k", np.int64, [1])
    with_log_probs = graph.input("with_log_probs", np.bool_, [1])
    for name in cache_names("cross", config.cross_layers):
        graph.input(name, dtype, ["slots", config.num_heads, "source", config.head_dim])
    decode: RecurrentStep | _Layers
    if isinstance(model, RecurrentNetwork):
        decode = RecurrentStep(graph, model, past_lengths, source_lengths, source_total, form.shares_slots)
    else:
        decode = _Layers(graph, model, past_lengths, self_total, source_lengths, source_total, form.shares_slots)
    x = decode(ids)
    choose = choose_among_candidates if form.has_shortlist else choose_among_all
    choose(graph, model, x, top_k, with_log_probs)
    decode.write()
    for name in cache_names("new_cross", config.cross_layers):
        graph.output(name, dtype, ["slots", config.num_heads, "source", config.head_dim])
    return graph


class _Layers:
    """Adds a Transformer's decoder to a step, and last what writes its states; the arguments are inputs of the step."""

    def __init__(
        self,
        graph: Graph,
        model: Transformer,
        past_lengths: str,
        self_total: str,
        source_lengths: str,
        source_total: str,
        shares_slots: bool,
    ) -> None:
        self._graph, self._model, self._past_lengths = graph, model, past_lengths
        self._mix = _mixer(graph, model.config, past_lengths, self_total)
        self._source = source_lengths, source_total, shares_slots

    def __call__(self, ids: str) -> str:
        """Adds the decoder from ids int64 [B] to what is projected, [B, M]."""
        graph, model = self._graph, self._model
        x = embed_target(graph, model, ids, self._past_lengths)
        attend_cross = CrossAttention(graph, model.config, x, *self._source)
        for i, layer in enumerate(model.decoder):
            x = draw_layer(graph, f"decoder.{i}", x, layer, self._mix, attend_cross)
        return graph.layer_norm("decoder.norm", x, model.decoder_norm) if model.config.decoder.has_final_norm else x

    def write(self) -> None:
        """Adds the outputs of the states."""
        self._mix.write()


def _mixer(
    graph: Graph, config: TransformerConfig, past_lengths: str, total: str
) -> SelfAttention | SSRUStates | RetentionStates | WindowAttention:
    """Adds the inputs of the states; returns what adds what a layer has for the target so far, and last the outputs."""
    if config.decoder_mixer == "ssru":
        return SSRUStates(graph, config, past_lengths)
    if config.decoder_mixer == "retention":
        return RetentionStates(graph, config, past_lengths)
    if config.self_window:
        return WindowAttention(graph, config, past_lengths)
    return SelfAttention(graph, config, past_lengths, total)


def copy_rows_graph(config: TransformerConfig, dtype: DTypeLike) -> onnx.ModelProto:
    """Builds what `server.runtime.device_decoder` fills and moves rows of its caches with.

    For each i of 2 * decoder layers, vectors `from` int64 [n] of `source.{i}` [N, D] become vectors `to` int64 [n, 1]
    of `cache.{i}` [N', D], which is written in place as `new_cache.{i}`. A vector is what one position has in one head
    of one row. A source may be the cache itself, because its vectors are read before any is written.

    Whole rows would be fewer indices. But ONNX Runtime's ScatterND for CUDA gives each index one thread, which would
    copy a row value by value.
    """
    return _copy_graph(dtype, 2 * config.decoder_layers, config.head_dim)


def copy_states_graph(config: TransformerConfig) -> onnx.ModelProto:
    """Builds the same for the states, which have a type and a width of their own."""
    states = states_of(config)
    return _copy_graph(states[0].dtype_in("float32"), len(states), states[0].shape[-1])


def _copy_graph(dtype: DTypeLike, num_tensors: int, width: int) -> onnx.ModelProto:
    graph = Graph("copy_rows", dtype)
    from_ = graph.input("from", np.int64, ["n"])
    to = graph.input("to", np.int64, ["n", 1])
    for i in range(num_tensors):
        source = graph.input(f"source.{i}", dtype, ["source_vectors", width])
        cache = graph.input(f"cache.{i}", dtype, ["vectors", width])
        graph.node("ScatterND", [cache, to, graph.node("Gather", [source, from_])], f"new_cache.{i}")
        graph.output(f"new_cache.{i}", dtype, ["vectors", width])
    return graph.build()


def draw_layer(graph: Graph, name: str, x: str, layer: Layer, mix: Any, attend_cross: Any) -> str:
    """Adds a layer from x [rows, M] to the same shape; `mix` adds what mixes positions, `attend_cross` may be None."""

    def residual(part: str, x: str, norm: torch.nn.LayerNorm, update: Any) -> str:
        if layer.is_pre_norm:
            return graph.node("Add", [x, update(graph.layer_norm(f"{name}.{part}.norm", x, norm))])
        return graph.layer_norm(f"{name}.{part}.norm", graph.node("Add", [x, update(x)]), norm)

    def attend(part: str, attention: MultiHeadAttention, context: Any) -> Any:
        def update(x: str) -> str:
            joined = context(f"{name}.{part}", x, attention)
            return graph.linear(f"{name}.{part}.output", joined, attention.output.weight, attention.output.bias)

        return update

    def feed_forward(x: str) -> str:
        inner, outer = layer.feed_forward.hidden, layer.feed_forward.output
        hidden = graph.linear(f"{name}.ffn.hidden", x, inner.weight, inner.bias)
        hidden = _activate(graph, layer.feed_forward.activation, hidden, f"{name}.ffn.activation")
        return graph.linear(f"{name}.ffn.output", hidden, outer.weight, outer.bias)

    if layer.recurrence is not None:
        x = residual("self", x, layer.self_norm, lambda x: mix(f"{name}.{layer.mixer}", x, layer.recurrence))
    else:
        x = residual("self", x, layer.self_norm, attend("self", layer.self_attention, mix))
    if attend_cross is not None:
        x = residual("cross", x, layer.cross_norm, attend("cross", layer.cross_attention, attend_cross))
    return residual("ffn", x, layer.feed_forward_norm, feed_forward)


def _activate(graph: Graph, kind: Activation, x: str, name: str) -> str:
    if kind == "relu":
        return graph.node("Relu", [x], name)
    if kind == "gelu":
        return graph.node("Gelu", [x], name)
    alpha = QUICK_GELU if kind == "quick_gelu" else 1.0  # x * sigmoid(alpha * x)
    return graph.node("QuickGelu", [x], name, domain="com.microsoft", alpha=alpha)
