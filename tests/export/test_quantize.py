from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto

from export.caches import cache_middles, cache_name, cache_scales
from export.embedding import TABLES
from export.graph import Graph, linear_inputs
from export.graphs import encoder_graph, step_graph
from export.quantize import quantize_graph
from export.states import states_of
from model.transformer import Transformer
from server.bundle.graphs import EMBEDDING, cache_names, cache_outputs
from server.bundle.states import SELF_STATE
from tests.export.conftest import SHAPES, Array, Stepper, build_model, open_graph, run_encoder
from tests.export.quantized import (
    ALL,
    FLOORS,
    KINDS,
    LENGTHS,
    SOURCES,
    TARGETS,
    TOLERANCE,
    activation,
    caches_of,
    encoded,
    graphs_of,
    linear_graph,
    quantized,
    random_linear,
    ranges_of,
    run,
)


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_of_a_linear_map_is_within_what_rounding_can_do(kind: str) -> None:
    weight, bias, x = random_linear()
    graph, inputs = linear_graph(kind, weight, bias), activation(kind, x)
    exact, largest = run(graph, x), np.array(np.abs(inputs).max())

    found = run(quantize_graph(graph, {"activation": largest}), x)

    levels = 127 if kind in ("norm", "any") else 255
    x_error = (largest + FLOORS.get(kind, 0)) / levels / 2
    w_error = np.abs(weight.numpy()).max(1) / 127 / 2
    magnitudes = np.abs(inputs).sum(1, keepdims=True), np.abs(weight.numpy()).sum(1)
    bound = magnitudes[0] * w_error + x_error * magnitudes[1] + 32 * x_error * w_error
    assert (np.abs(found - exact) <= bound * 1.001 + 1e-5).all()
    assert np.abs(found - exact).max() > 0  # it is int8 indeed


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_gives_the_same_bits_alone_and_among_others(kind: str) -> None:
    weight, bias, x = random_linear()
    graph = quantize_graph(linear_graph(kind, weight, bias), {"activation": np.array(3.0, np.float32)})

    together = run(graph, x)

    for row in range(len(x)):
        assert np.array_equal(run(graph, x[row : row + 1])[0], together[row])


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_beyond_the_calibrated_range_is_clipped_and_harms_no_other(kind: str) -> None:
    weight, bias, x = random_linear()
    graph = linear_graph(kind, weight, bias)

    narrow = run(quantize_graph(graph, {"activation": np.array(0.5, np.float32)}), x)

    clipped = np.clip(activation(kind, x), -0.5, 0.5)
    expected = clipped @ weight.numpy().T + bias.numpy()
    np.testing.assert_allclose(narrow, expected, atol=0.5)


def test_what_a_relu_cuts_is_cut_without_a_node_of_its_own() -> None:
    weight, bias, x = random_linear()

    graph = quantize_graph(linear_graph("relu", weight, bias), {"activation": np.array(3.0, np.float32)})

    assert [node.op_type for node in graph.graph.node] == ["QuantizeLinear", "MatMulIntegerToFloat"]
    np.testing.assert_allclose(run(graph, -np.abs(x)), np.tile(bias.numpy(), (6, 1)), atol=1e-6)


def test_a_range_is_that_of_the_tensor_before_reshapes() -> None:
    weight, bias, x = random_linear()
    graph = Graph("reshaped", np.float32)
    named = graph.node("Identity", [graph.input("x", np.float32, [6, 32])], "activation")
    graph.linear("y", graph.reshape(graph.reshape(named, [3, 2, 32]), [-1, 32]), weight, bias)
    graph.output("y", np.float32, [6, 24])
    model = graph.build()

    found = run(quantize_graph(model, {"activation": np.array(np.abs(x).max())}), x)

    assert linear_inputs(model) == ["activation"]
    np.testing.assert_allclose(found, run(model, x), atol=0.03 * np.abs(found).max())


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_linear_inputs_are_those_of_the_architecture(norm: str) -> None:
    model = build_model(vocab_size=20, norm=norm, encoder_layers=2, decoder_layers=1)
    first, last = (["encoder.norm"], ["decoder.norm"]) if norm == "pre" else (["encoder.input"], ["decoder.input"])

    encoder, step = (linear_inputs(graph) for graph in graphs_of(model))

    parts = [f"{i}.{part}" for i in (0, 1) for part in ("self.norm", "self.context", "ffn.norm", "ffn.activation")]
    assert encoder == sorted([*first, *(f"encoder.{part}" for part in parts)])
    parts = ["self.norm", "self.context", "cross.norm", "cross.context", "ffn.norm", "ffn.activation"]
    assert step == sorted([*last, *(f"decoder.0.{part}" for part in parts)])


def test_steps_give_each_row_the_same_bits_alone_and_among_others(model: Transformer) -> None:
    encoder, step = quantized(model)
    cross = encoded(encoder)
    together, alone = (Stepper(step, model, cross, capacity=6) for _ in range(2))

    for position in range(4):
        ids, past = [target[position] for target in TARGETS], [position] * 3
        shared = together(ids, past, LENGTHS, ALL, k=8)
        for row in ALL:
            own = alone([ids[row]], [position], [LENGTHS[row]], [row], k=8)
            for name in ("logits", "top_ids", "top_log_probs"):
                assert np.array_equal(own[name][0], shared[name][row]), name
    for name, cache in together.self_caches.items():
        assert np.array_equal(cache, alone.self_caches[name]), name


def test_the_encoder_keeps_rows_apart_too(model: Transformer) -> None:
    encoder, _ = quantized(model)

    together = encoded(encoder)

    for row, source in enumerate(SOURCES):
        alone = run_encoder(encoder, np.array([source]), [len(source)])
        for one, all_rows in zip(alone, together, strict=True):
            assert np.array_equal(one[0], all_rows[row, :, : len(source)])


def test_logits_stay_close_to_single_precision(model: Transformer) -> None:
    graphs = {"int8": quantized(model), "fp32": graphs_of(model)}
    logits: dict[str, list[Array]] = {name: [] for name in graphs}
    for name, (encoder, step) in graphs.items():
        stepper = Stepper(step, model, encoded(encoder), capacity=6)
        for position in range(4):
            ids = [target[position] for target in TARGETS]
            logits[name].append(stepper(ids, [position] * 3, LENGTHS, ALL)["logits"])

    found, expected = (np.stack(logits[name]) for name in ("int8", "fp32"))
    assert np.array_equal(np.isinf(found), np.isinf(expected))
    found, expected = (logits[np.isfinite(expected)] for logits in (found, expected))
    assert np.abs(found - expected).max() < 0.15 * np.abs(expected).max()
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.998


def test_every_linear_map_and_the_embedding_are_int8(model: Transformer) -> None:
    for before, after in zip(graphs_of(model), quantized(model), strict=True):
        linear_maps = sum(node.op_type == "Gemm" for node in before.graph.node)
        kinds = [node.op_type for node in after.graph.node]
        assert not {"Gemm", "DynamicQuantizeLinear"} & set(kinds)
        assert kinds.count("Relu") == kinds.count("Sigmoid")  # of SSRUs, whose results no linear map multiplies
        assert kinds.count("MatMulIntegerToFloat") == linear_maps
        weights = {tensor.name: tensor for tensor in after.graph.initializer}
        tables = [tensor.data_type for name, tensor in weights.items() if name in TABLES]
        assert set(tables) == {TensorProto.INT8}
        assert [name for name, tensor in weights.items() if is_large_float(tensor)] == []
        unused = set() if model.config.tied_output else {EMBEDDING, f"{EMBEDDING}.scale"}  # it is for shortlists
        assert weights.keys() <= used_names(after.graph.node) | unused


def is_large_float(tensor: onnx.TensorProto) -> bool:
    """Says whether a tensor is a matrix that is not int8; the table of positions alone may be one."""
    is_matrix = len(tensor.dims) == 2 and min(tensor.dims) > 1 and tensor.name != "positions"
    return is_matrix and tensor.data_type != TensorProto.INT8


def used_names(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    branches = [attribute.g.node for node in nodes for attribute in node.attribute if attribute.HasField("g")]
    return {name for node in nodes for name in node.input}.union(*map(used_names, branches))


def test_caches_are_int8_wherever_they_go_in_or_out(model: Transformer) -> None:
    encoder, step = (graph.graph for graph in quantized(model))

    found = {
        (tensor.name, tensor.type.tensor_type.elem_type)
        for tensor in (*encoder.output, *step.input, *step.output)
        if any(part in tensor.name for part in ("key", "value", "state"))
    }

    caches = cache_outputs(states_of(model.config), model.config.decoder_layers)
    assert found == {
        (tensor, TensorProto.FLOAT if name.startswith(SELF_STATE) else TensorProto.INT8)
        for name, outputs in caches.items()
        for tensor in (name, *outputs)
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [("new_self_key.0", "self_key.0"), ("written_self_key.0", "self_key.0"), ("cross_value.1", "cross_value.1")],
)
def test_an_output_goes_into_the_cache_of_its_name(name: str, expected: str) -> None:
    assert cache_name(name) == expected


def test_caches_hold_what_single_precision_holds_in_units_of_their_channels(model: Transformer) -> None:
    with torch.no_grad():  # channels of another magnitude, which a scale shared with others would round to nothing
        for layer in model.decoder:
            for attention in (
                (layer.cross_attention,)
                if layer.recurrence is not None
                else (layer.self_attention, layer.cross_attention)
            ):
                attention.qkv.weight[attention.width :: 5] *= 0.003
                attention.qkv.bias[attention.width :: 5] *= 0.003
    ranges = ranges_of(model)

    exact, found = caches_of(model, graphs_of(model)), caches_of(model, quantized(model, ranges))

    for name, cache in found.items():
        if name.startswith(SELF_STATE):
            assert np.abs(cache - exact[name]).max() < TOLERANCE * np.abs(exact[name]).max()
            continue
        assert cache.dtype == np.int8
        assert np.abs(cache.astype(int)).max() <= 128
        units, expected = in_units(name, ranges[name], exact[name])
        largest = np.abs(ranges[name]).max(axis=0)[None, :, None, :]
        assert (np.abs(cache * units - expected) / largest).max() < TOLERANCE, name


def test_a_key_or_value_beyond_its_range_is_clipped_not_wrapped(model: Transformer) -> None:
    ranges = ranges_of(model)
    layers = model.config.decoder_layers
    names = [name for name in cache_outputs(states_of(model.config), model.config.decoder_layers) if name in ranges]
    narrow = {**ranges, **{name: ranges[name] / np.float32(4) for name in names}}

    exact, found = caches_of(model, graphs_of(model)), caches_of(model, quantized(model, narrow))

    for name in cache_names("cross", layers):  # what the self-attention caches hold depends on what it reads here
        units, expected = in_units(name, narrow[name], exact[name])
        clipped = np.clip(expected, -127 * units, 127 * units)
        assert np.abs(found[name] * units - clipped).max() < 4 * TOLERANCE * 127 * units.max(), name
    first = {name: found[name] for name in cache_names("self", 1) if name in found}
    for name, cache in first.items():
        units, expected = in_units(name, narrow[name], exact[name])
        beyond = np.abs(expected) > 1.5 * 127 * units
        assert beyond.any()
        assert (np.sign(cache) == np.sign(expected))[beyond].all()
        assert (np.abs(cache.astype(int))[beyond] >= 127).all()


def in_units(name: str, reach: Array, cache: Array) -> tuple[Array, Array]:
    """Returns what a unit of a cache is, [1, H, 1, D], and single precision's cache as it is before it is rounded."""
    shape = (1, reach.shape[1], 1, reach.shape[2])
    is_written = (cache != 0).any(axis=(1, 3), keepdims=True)
    return cache_scales(name, reach).reshape(shape), (cache - cache_middles(name, reach).reshape(shape)) * is_written


def test_the_embedding_is_looked_up_with_a_scale_per_token() -> None:
    model = build_model(**SHAPES["post-odd"])
    with torch.no_grad():
        model.embedding.tokens.weight[7] *= 1000  # must not coarsen its neighbours
    graph = _lookup(model)
    ids: Any = {"x": np.arange(300)}

    exact = open_graph(graph).run(None, ids)[0]
    found = open_graph(quantize_graph(graph, {})).run(None, ids)[0]

    assert (np.abs(found - exact) <= np.abs(exact).max(axis=1, keepdims=True) / 127 * 0.501).all()


def _lookup(model: Transformer) -> onnx.ModelProto:
    graph = Graph("lookup", np.float32)
    ids = graph.input("x", np.int64, ["rows"])
    graph.node("Gather", [graph.weight(EMBEDDING, model.embedding.tokens.weight), ids], "embedded")
    graph.output("embedded", np.float32, ["rows", model.config.d_model])
    return graph.build()


@pytest.mark.parametrize("graph_of", [encoder_graph, step_graph])
def test_each_missing_range_is_an_error_that_names_it(graph_of: Any) -> None:
    model = build_model(**SHAPES["post"])
    graph, ranges = graph_of(model), ranges_of(model)
    ends = [tensor.name for tensor in (*graph.graph.input, *graph.graph.output)]

    needed = {*linear_inputs(graph), *(name for name in ranges if name in ends)}

    assert needed & set(cache_names("cross", 2)) == set(cache_names("cross", 2))
    for name in needed:
        with pytest.raises(KeyError, match=name):
            quantize_graph(graph, {key: value for key, value in ranges.items() if key != name})
