"""The end of a decoder step: the projection to the vocabulary, or to a shortlist's columns, and its best tokens."""

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from export.graph import Graph
from model.network import Network
from server.bundle.graphs import CANDIDATES, COLUMNS, EMBEDDING, LOGITS, MAX_BEAM_SIZE, PRODUCTS

MAX_TOP_K = 2 * MAX_BEAM_SIZE  # best tokens that a step can return
MAX_BLOCK = 128  # vocabulary entries of which the exact top-k first takes the maximum
_BLOCKS = range(MAX_BLOCK // 2, 2 * MAX_BLOCK)  # sizes that do as well
_UNEVEN_BLOCK = 64  # where none divides the vocabulary
SHORTLIST_BLOCK = CANDIDATES // MAX_TOP_K  # the same for the candidates of a shortlist
CANDIDATE_LOGITS = "candidate_logits"  # of all rows, one after the other


def choose_among_all(graph: Graph, model: Network, x: str, top_k: str, with_log_probs: str) -> None:
    """Adds the projection to the whole vocabulary, and the best tokens."""
    logits = project(graph, model, x)
    graph.output(logits, np.float32, ["rows", model.config.vocab_size])
    values, columns = best_of_all(graph, logits, model.config.vocab_size, top_k)
    add_log_probs(graph, logits, values, columns, with_log_probs)


def best_of_all(graph: Graph, logits: str, vocab_size: int, top_k: str) -> tuple[str, str]:
    """Returns the k best of logits [B, V], and, as `top_ids`, their tokens; best first."""
    block = block_size(vocab_size)
    if vocab_size % block == 0:
        return _best_of_blocks(graph, logits, block, top_k, "top_ids")
    if graph.dtype == np.float32:
        return _best_of_uneven_blocks(graph, logits, block, top_k, vocab_size)
    # CUDA's MaxPool wants a library of its own.
    pads = graph.constant([0, 0, 0, -vocab_size % block])
    padded = graph.node("Pad", [logits, pads, graph.constant(-np.inf, np.float32)])
    return _best_of_blocks(graph, padded, block, top_k, "top_ids")


def block_size(vocab_size: int) -> int:
    """Returns how many entries to take the maximum of, so that there are at least as many blocks as best tokens.

    It divides the vocabulary if anything near `MAX_BLOCK` does: else maxima take several times as long.
    """
    largest = max(1, vocab_size // MAX_TOP_K)
    if largest < MAX_BLOCK:
        return largest
    divisors = [size for size in _BLOCKS if size <= largest and vocab_size % size == 0]
    return min(divisors, key=lambda size: abs(size - MAX_BLOCK), default=_UNEVEN_BLOCK)


def choose_among_candidates(graph: Graph, model: Network, x: str, top_k: str, with_log_probs: str) -> None:
    """Adds the projection to columns that the server chose, and the best of each row's candidates among them.

    The columns are the first factor, since the second is packed in every step, and in blocks, so that what is summed
    up stays in the cache. Their logits are gathered as they lie, column by column, by their places in one long row.
    """
    if not model.config.tied_output:
        graph.weight(EMBEDDING, model.output_weight)  # no node has it, but int8 needs the columns' scales
    weight = graph.input("shortlist_weight", graph.dtype, ["blocks", COLUMNS, model.config.d_model])
    ids = graph.input("shortlist_ids", np.int64, ["columns"])
    candidates = graph.input("candidates", np.int32, ["rows", "candidates"])
    by_column = graph.node("Transpose", [graph.reshape(x, [1, -1, model.config.d_model])], perm=[0, 2, 1])
    products = graph.node("MatMul", [weight, by_column], PRODUCTS)
    graph.output(products, np.float32, ["blocks", COLUMNS, "rows"])
    shape = graph.node("Shape", [candidates])
    num_rows = graph.node("Squeeze", [graph.node("Shape", [candidates], end=1)])
    num_rows = graph.node("Cast", [num_rows], to=onnx.TensorProto.INT32)
    first, step = graph.constant(0, np.int32), graph.constant(1, np.int32)
    rows = graph.reshape(graph.node("Range", [first, num_rows, step]), [-1, 1])
    # -1 becomes a place counted from the end; what is gathered there is masked.
    places = graph.node("Add", [graph.node("Mul", [candidates, num_rows]), rows])
    flat = [graph.reshape(tensor, [1, -1]) for tensor in (products, places)]
    gathered = graph.node("GatherElements", flat, CANDIDATE_LOGITS, axis=1)
    if model.output_bias is not None:
        gathered = graph.node("Add", [gathered, _candidate_biases(graph, model.output_bias, ids, candidates)])
    is_candidate = graph.node("GreaterOrEqual", [candidates, first])
    none = graph.constant(-np.inf, np.float32)
    logits = graph.node("Where", [is_candidate, graph.node("Reshape", [gathered, shape]), none], LOGITS)
    values, chosen = _best_of_blocks(graph, logits, SHORTLIST_BLOCK, top_k, "top_candidates")
    add_log_probs(graph, logits, values, chosen, with_log_probs)
    graph.node("Gather", [ids, graph.node("GatherElements", [candidates, chosen], axis=1)], "top_ids")


def _candidate_biases(graph: Graph, bias: torch.Tensor, ids: str, candidates: str) -> str:
    """Returns the bias of each candidate, [1, B * m]; where there is none, -1, it is that of the last token."""
    table = graph.weight("output_bias.row", bias[None])
    ids, candidates = (graph.reshape(tensor, [1, -1]) for tensor in (ids, candidates))
    of_columns = graph.node("GatherElements", [table, ids], axis=1)  # Gather is ten times slower for one element
    return graph.node("GatherElements", [of_columns, candidates], axis=1)


def project(graph: Graph, model: Network, x: str) -> str:
    """Returns the logits [B, V], in float32, of what the model's last layer returns [B, M]."""
    factors = [x, graph.weight(EMBEDDING, model.output_weight)]
    if model.output_bias is not None:
        factors.append(graph.weight("output_bias", model.output_bias))
    if graph.dtype == np.float32:
        return graph.node("Gemm", factors, LOGITS, transB=1)
    projected = graph.node("Gemm", factors, transB=1)
    return graph.node("Cast", [projected], LOGITS, to=onnx.TensorProto.FLOAT)


def _best_of_blocks(graph: Graph, logits: str, block: int, top_k: str, name: str) -> tuple[str, str]:
    """Adds the exact k best values, and their columns under a name, where blocks divide the columns.

    They lie in the k blocks with the largest maxima, so only these are searched: on the CPU an order of magnitude
    cheaper than TopK over all columns.
    """
    blocks = graph.reshape(logits, [0, -1, block])
    block_maxima = graph.node("ReduceMax", [blocks, graph.constant([2])], keepdims=0)  # [B, blocks]
    best_blocks = _top_k(graph, block_maxima, top_k, "best_blocks")[1]  # [B, k]
    indices = graph.node("Unsqueeze", [best_blocks, graph.constant([2])])  # [B, k, 1]
    searched = graph.node("GatherND", [blocks, indices], batch_dims=1)  # [B, k, block]
    values, places = _top_k(graph, graph.node("Flatten", [searched], axis=1), top_k, "best")
    size = graph.constant(block)
    chosen = graph.node("GatherElements", [best_blocks, graph.node("Div", [places, size])], axis=1)
    offset = graph.node("Mod", [places, size])
    return values, graph.node("Add", [graph.node("Mul", [chosen, size]), offset], name)


def _best_of_uneven_blocks(graph: Graph, logits: str, block: int, top_k: str, vocab_size: int) -> tuple[str, str]:
    """The same where the last block is shorter. To pad it would be to copy all logits, to new memory in every step."""
    pooled = graph.node(
        "MaxPool", [graph.reshape(logits, [0, 1, -1])], kernel_shape=[block], strides=[block], ceil_mode=1
    )
    best_blocks = _top_k(graph, graph.reshape(pooled, [0, -1]), top_k, "best_blocks")[1]
    starts = graph.node("Unsqueeze", [graph.node("Mul", [best_blocks, graph.constant(block)]), graph.constant([2])])
    columns = graph.node("Flatten", [graph.node("Add", [starts, graph.constant(np.arange(block))])], axis=1)
    inside = graph.node("Min", [columns, graph.constant(vocab_size - 1)])
    gathered = graph.node("GatherElements", [logits, inside], axis=1)  # [B, k * block]
    none = graph.constant(-np.inf, np.float32)
    is_inside = graph.node("Less", [columns, graph.constant(vocab_size)])
    values, places = _top_k(graph, graph.node("Where", [is_inside, gathered, none]), top_k, "best")
    return values, graph.node("GatherElements", [columns, places], "top_ids", axis=1)


def add_log_probs(graph: Graph, logits: str, values: str, columns: str, with_log_probs: str) -> str:
    """Adds the log-probabilities of the best values, declares what is chosen, and returns what it took off a logit."""
    log_total = _log_sum_exp(graph, logits, values, columns, with_log_probs)
    graph.node("Sub", [values, log_total], "top_log_probs")
    graph.output("top_ids", np.int64, ["rows", "k"])
    graph.output("top_log_probs", np.float32, ["rows", "k"])
    return log_total


def _log_sum_exp(graph: Graph, logits: str, values: str, columns: str, condition: str) -> str:
    """Returns the logarithm of the sum of exponentials of each row, [B, 1], or 0 [1, 1] unless the condition holds.

    What LogSoftmax took off the best logit, the first of `values` in the first of `columns`, it took off every one. It
    goes over the logits once; ReduceLogSumExp, and exponentials node by node, go several times.

    In half precision, which is for CUDA, there is no condition: its graphs are captured, and cannot hold a branch.
    """
    if graph.dtype != np.float32:
        value, best = _first(graph, values), _first(graph, columns)
        log_probs = graph.node("LogSoftmax", [logits], "all_log_probs", axis=-1)
        return graph.node("Sub", [value, graph.node("GatherElements", [log_probs, best], axis=1)], "log_sum_exp")
    # A row at a time: what LogSoftmax returns for all of them is new memory in every step, whose pages cost more than
    # its exponentials, and would not stay in the processor's cache.
    row = Graph("row", np.float32)
    logits_of_row, best_of_row = row.input("row", np.float32, ["columns"]), row.input("row_best", np.int64, [1])
    log_probs = row.node("LogSoftmax", [logits_of_row], "all_log_probs", axis=0)
    row.output(row.node("Gather", [log_probs, best_of_row], "best_log_prob"), np.float32, [1])
    branch, otherwise = Graph("log_sum_exp", np.float32), Graph("no_log_sum_exp", np.float32)
    scanned = branch.node("Scan", [logits, _first(branch, columns)], body=row.build().graph, num_scan_inputs=2)
    branch.output(branch.node("Sub", [_first(branch, values), scanned]), np.float32, ["rows", 1])
    zero = otherwise.node("Constant", [], "zero", value=numpy_helper.from_array(np.zeros((1, 1), np.float32)))
    otherwise.output(zero, np.float32, [1, 1])
    return graph.node("If", [condition], then_branch=branch.build().graph, else_branch=otherwise.build().graph)


def _first(graph: Graph, best: str) -> str:
    """Returns the first of each row's best, [B, 1]; by nodes alone, since a branch has no place for constants."""
    first, second = (graph.node("Constant", [], f"{best}.{value}", value_ints=[value]) for value in (0, 1))
    return graph.node("Slice", [best, first, second, second], f"{best}.first")


def _top_k(graph: Graph, x: str, k: str, name: str) -> tuple[str, str]:
    values, indices = f"{name}.values", f"{name}.indices"
    graph.node_of_many("TopK", [x, k], [values, indices], axis=-1)
    return values, indices
