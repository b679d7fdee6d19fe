"""A network that writes all words at once as an ONNX graph, from source ids to each position's best tokens.

The operators are those of `export.graphs`: attention takes a length per row, so that a sentence has the same bits alone
and in a batch.
"""

import numpy as np
import onnx
from numpy.typing import DTypeLike

from export.attention import MutualAttention
from export.embedding import normalise_embedded
from export.graph import Graph
from export.graphs import draw_layer, encode
from export.projection import add_log_probs, best_of_all, project
from model.one_pass import UPSAMPLING, OnePass


def one_pass_graph(model: OnePass, dtype: DTypeLike = np.float32) -> onnx.ModelProto:
    """Builds the graph of a network.

    It reads `source_ids` int64 [B, S], `source_lengths` int32 [B], and in host memory `top_k` int64 [1] (at most
    `MAX_TOP_K` and V) and `with_log_probs` bool [1]. What pads `source_ids` behind a row's length does not matter.

    It returns, for each of the B * 2S positions, those of a row one after the other, `top_ids` int64 [B * 2S, k] and
    `top_log_probs` float32 [B * 2S, k], best first, and `blank_log_probs` float32 [B * 2S, 1]. A row of n source tokens
    has 2n positions that count. Unless `with_log_probs` holds, the values are logits, which spares greedy search the
    softmax.
    """
    return draw_one_pass(model, dtype).build()


def draw_one_pass(model: OnePass, dtype: DTypeLike = np.float32) -> Graph:
    """Draws what `one_pass_graph` builds; in float32 its initializers are views of the model's weights."""
    config, stack = model.config, model.config.encoder
    graph = Graph("one_pass", dtype)
    ids = graph.input("source_ids", np.int64, ["rows", "source"])
    lengths = graph.input("source_lengths", np.int32, ["rows"])
    top_k = graph.input("top_k", np.int64, [1])
    with_log_probs = graph.input("with_log_probs", np.bool_, [1])
    shape = graph.node("Shape", [ids])
    x = encode(graph, model, ids, shape, lengths)
    upsampled_shape = graph.node("Mul", [shape, graph.constant([1, UPSAMPLING])])
    upsampled_lengths = graph.node("Mul", [lengths, graph.constant(UPSAMPLING, np.int32)])
    x = _upsample(graph, model, x, upsampled_shape)
    attend = MutualAttention(graph, stack, upsampled_shape, upsampled_lengths)
    for i, layer in enumerate(model.decoder):
        x = draw_layer(graph, f"decoder.{i}", x, layer, attend, None)
    if config.decoder.has_final_norm:
        x = graph.layer_norm("decoder.norm", x, model.decoder_norm)
    logits = project(graph, model, x)
    values, columns = best_of_all(graph, logits, config.vocab_size, top_k)
    log_total = add_log_probs(graph, logits, values, columns, with_log_probs)
    blank = graph.node("Gather", [logits, graph.constant([config.bos_id])], axis=1)
    graph.node("Sub", [blank, log_total], "blank_log_probs")
    graph.output("blank_log_probs", np.float32, ["rows", 1])
    return graph


def _upsample(graph: Graph, model: OnePass, x: str, shape: str) -> str:
    """Adds what makes two positions of each token, from [B * S, M] to [B * 2S, M]; `shape` is B and 2S."""
    width = model.config.d_model
    x = graph.linear("upsampling", x, model.upsampling.weight, model.upsampling.bias)
    x = graph.node("Reshape", [x, graph.node("Concat", [shape, graph.constant([width])], axis=0)])
    table = graph.weight("upsampled_positions", model.upsampled_positions)
    length = graph.node("Slice", [shape, graph.constant([1]), graph.constant([2])])
    positions = graph.node("Slice", [table, graph.constant([0]), length, graph.constant([0])])
    x = normalise_embedded(graph, model, "decoder", graph.node("Add", [x, positions], "decoder.input"))
    return graph.reshape(x, [-1, width])
