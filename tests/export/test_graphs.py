import itertools

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from export.graph import OPSETS
from export.graphs import encoder_graph, step_graph
from export.projection import MAX_TOP_K
from export.states import states_of
from model.data import pad
from model.transformer import Transformer
from server.bundle.graphs import CONTROL_NAMES, SLOT_NAMES, StepForm, cache_names, cache_outputs
from tests.export.conftest import Array, Stepper, build_model, open_graph, run_encoder

SOURCES = [[5, 9, 12, 7, 3], [8, 3], [6, 15, 3]]
TARGETS = [[2, 10, 11, 4, 13, 9], [2, 14, 15, 16, 7, 6], [2, 17, 4, 5, 6, 18]]
LENGTHS = [len(source) for source in SOURCES]
ALL = [0, 1, 2]
ATOL = 1e-4  # float32, other order of sums: the design's bound for logits


@torch.inference_mode()
def torch_cross(model: Transformer) -> list[Array]:
    """The keys and values of each decoder layer's cross-attention, in the order of `cache_names`."""
    memory, _ = model.encode(pad(SOURCES, 0))
    heads = model.config.num_heads
    width = heads * model.config.head_dim
    by_name = {}
    for i, layer in enumerate(model.decoder):
        qkv = layer.cross_attention.qkv
        projected = memory @ qkv.weight[width:].T + qkv.bias[width:]
        for name, part in zip((f"cross_key.{i}", f"cross_value.{i}"), projected.chunk(2, -1), strict=True):
            by_name[name] = part.unflatten(-1, (heads, -1)).transpose(1, 2).numpy()
    return [by_name[name] for name in cache_names("cross", model.config.decoder_layers)]


@torch.inference_mode()
def teacher_forced(model: Transformer) -> Array:
    logits: Array = model(pad(SOURCES, 0), torch.tensor(TARGETS)).numpy()
    return logits


def inside(cross: Array, row: int) -> Array:
    return cross[row, :, : LENGTHS[row]]


def opened(model: Transformer, dtype: type = np.float32, capacity: int = 6) -> Stepper:
    cross = run_encoder(encoder_graph(model, dtype), pad(SOURCES, 0).numpy(), LENGTHS)
    return Stepper(step_graph(model, dtype), model, cross, capacity)


def test_the_encoder_gives_the_cross_keys_and_values_of_torch(model: Transformer) -> None:
    found = run_encoder(encoder_graph(model), pad(SOURCES, 0).numpy(), LENGTHS)

    for actual, expected in zip(found, torch_cross(model), strict=True):
        assert actual.shape == expected.shape
        for row in ALL:
            np.testing.assert_allclose(inside(actual, row), inside(expected, row), atol=ATOL, rtol=0)


def test_what_pads_the_source_does_not_matter(model: Transformer) -> None:
    graph, ids = encoder_graph(model), pad(SOURCES, 0).numpy()
    other = ids.copy()
    for row, length in enumerate(LENGTHS):
        other[row, length:] = 11

    before, after = (run_encoder(graph, padded, LENGTHS) for padded in (ids, other))

    for one, two in zip(before, after, strict=True):
        assert all(np.array_equal(inside(one, row), inside(two, row)) for row in ALL)


def test_steps_give_the_teacher_forced_logits_of_torch(model: Transformer) -> None:
    step, expected = opened(model), teacher_forced(model)

    for position in range(6):
        ids = [target[position] for target in TARGETS]
        logits = step(ids, [position] * 3, LENGTHS, ALL)["logits"]
        np.testing.assert_allclose(logits, expected[:, position], atol=ATOL, rtol=0)


def test_rows_of_one_step_may_stand_at_different_positions(model: Transformer) -> None:
    step, expected = opened(model, capacity=9), teacher_forced(model)
    for position in range(4):  # the first row runs ahead, alone
        step([TARGETS[0][position]], [position], LENGTHS[:1], [0])
    step([TARGETS[1][0]], [0], LENGTHS[1:2], [1])

    positions = [4, 1, 0]
    logits = step([TARGETS[row][positions[row]] for row in ALL], positions, LENGTHS, ALL)["logits"]

    for row in ALL:
        np.testing.assert_allclose(logits[row], expected[row, positions[row]], atol=ATOL, rtol=0)


def test_what_stands_behind_the_lengths_in_a_cache_does_not_matter(model: Transformer) -> None:
    clean, dirty = opened(model), opened(model)
    for name in dirty.self_caches:
        dirty.self_caches[name][:] = 7.0
    for cross in dirty.cross.values():
        for row, length in enumerate(LENGTHS):
            cross[row, :, length:] = -9.0

    for position in range(3):
        ids = [target[position] for target in TARGETS]
        one, two = (step(ids, [position] * 3, LENGTHS, ALL)["logits"] for step in (clean, dirty))
        assert np.array_equal(one, two)


@pytest.mark.parametrize("k", [1, 8, MAX_TOP_K])
def test_the_best_tokens_are_exactly_those_of_torch(model: Transformer, k: int) -> None:
    k = min(k, model.config.vocab_size)
    outputs = opened(model)([2, 2, 2], [0] * 3, LENGTHS, ALL, k)
    log_probs = torch.from_numpy(outputs["logits"]).double().log_softmax(-1)
    expected = log_probs.topk(k)

    assert np.array_equal(outputs["top_ids"], expected.indices.numpy())
    np.testing.assert_allclose(outputs["top_log_probs"], expected.values.numpy(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("first", [0, 128, 256])
def test_the_best_tokens_are_found_where_one_block_holds_them_all(first: int) -> None:
    model = build_model(vocab_size=300)
    with torch.no_grad():
        model.embedding.tokens.weight[first : first + 128] *= 20.0

    outputs = opened(model)([2, 2, 2], [0] * 3, LENGTHS, ALL, 10)

    expected = torch.from_numpy(outputs["logits"]).topk(10).indices.numpy()
    assert np.array_equal(outputs["top_ids"], expected)
    assert ((expected >= first) & (expected < first + 128)).all()


def test_log_probabilities_of_huge_logits_are_finite_and_exact() -> None:
    model = build_model(vocab_size=200)
    with torch.no_grad():
        model.embedding.tokens.weight *= 100.0

    outputs = opened(model)([2, 2, 2], [0] * 3, LENGTHS, ALL, MAX_TOP_K)

    assert np.abs(outputs["logits"]).max() > 100  # exp would overflow
    expected = torch.from_numpy(outputs["logits"]).double().log_softmax(-1).topk(MAX_TOP_K).values.numpy()
    np.testing.assert_allclose(outputs["top_log_probs"], expected, atol=1e-3, rtol=1e-6)


def test_without_log_probabilities_the_same_tokens_come_with_their_logits(model: Transformer) -> None:
    step = opened(model)

    exact = step([2, 2, 2], [0] * 3, LENGTHS, ALL, 8)
    outputs = step([2, 2, 2], [0] * 3, LENGTHS, ALL, 8, with_log_probs=False)

    assert np.array_equal(outputs["top_ids"], exact["top_ids"])
    assert np.array_equal(outputs["top_log_probs"], np.take_along_axis(exact["logits"], exact["top_ids"], axis=1))
    assert not np.allclose(outputs["top_log_probs"], exact["top_log_probs"], atol=ATOL)


def test_the_softmax_stands_in_a_branch_that_need_not_run(model: Transformer) -> None:
    nodes = step_graph(model).graph.node

    (choice,) = [node for node in nodes if node.op_type == "If"]
    branches = {branch.name: branch.g.node for branch in choice.attribute}
    (rows,) = [node for node in branches["then_branch"] if node.op_type == "Scan"]
    assert [node.op_type for node in rows.attribute[0].g.node] == ["LogSoftmax", "Gather"]
    assert [node.op_type for node in branches["else_branch"]] == ["Constant"]
    assert not {"LogSoftmax", "Softmax", "Exp", "ReduceLogSumExp"} & {node.op_type for node in nodes}


def test_a_step_returns_the_cross_caches_that_it_read(model: Transformer) -> None:
    step = opened(model)

    outputs = step([2, 2, 2], [0] * 3, LENGTHS, ALL)

    for name, new_name in zip(step.cross, cache_names("new_cross", model.config.decoder_layers), strict=True):
        assert outputs[new_name].shape == step.cross[name].shape
        assert all(np.array_equal(inside(outputs[new_name], row), inside(step.cross[name], row)) for row in ALL)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_step_has_the_outputs_that_the_server_binds(model: Transformer, dtype: type) -> None:
    names = [output.name for output in step_graph(model, dtype).graph.output]

    outputs = cache_outputs(states_of(model.config), model.config.decoder_layers).values()
    assert names == ["logits", "top_ids", "top_log_probs", *itertools.chain.from_iterable(outputs)]


def test_half_precision_is_close_to_single() -> None:
    model = build_model(vocab_size=300)
    half, single = opened(model, np.float16), opened(model)

    for position in range(4):
        ids = [target[position] for target in TARGETS]
        found, expected = (step(ids, [position] * 3, LENGTHS, ALL, 5) for step in (half, single))
        assert found["logits"].dtype == found["top_log_probs"].dtype == np.float32
        assert found[cache_names("new_self", 2)[0]].dtype == np.float16
        np.testing.assert_allclose(found["logits"], expected["logits"], atol=0.05)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_graphs_use_the_stated_operator_sets_and_hold_no_other_nodes(model: Transformer, dtype: type) -> None:
    for graph in (encoder_graph(model, dtype), step_graph(model, dtype)):
        assert {opset.domain: opset.version for opset in graph.opset_import} == OPSETS
        assert {node.domain for node in graph.graph.node} == set(OPSETS)
        onnx.checker.check_model(graph, full_check=False)


def test_each_weight_stands_in_a_graph_once(model: Transformer) -> None:
    graph = step_graph(model).graph

    arrays = [numpy_helper.to_array(tensor) for tensor in graph.initializer]
    large = [array.tobytes() for array in arrays if array.size >= 1000]
    assert len(large) == len(set(large))
    num_tables = sum(array.shape == model.embedding.tokens.weight.shape for array in arrays)
    assert num_tables == (1 if model.config.tied_output else 2)


def test_graph_inputs_are_those_that_the_server_feeds(model: Transformer) -> None:
    layers = model.config.decoder_layers

    encoder = open_graph(encoder_graph(model))
    plain, shared, half = (
        {tensor.name for tensor in step_graph(model, dtype, StepForm(shares_slots=shares_slots)).graph.input}
        for dtype, shares_slots in ((np.float32, False), (np.float32, True), (np.float16, False))
    )

    assert [tensor.name for tensor in encoder.get_inputs()] == ["source_ids", "source_lengths"]
    assert {tensor.name for tensor in encoder.get_outputs()} == set(cache_names("cross", layers))
    assert plain == half == {*CONTROL_NAMES, *cache_outputs(states_of(model.config), model.config.decoder_layers)}
    assert shared == {*plain, *SLOT_NAMES}
