from typing import Any

import numpy as np
import onnx
import pytest
import torch

from export.bundle import calibrate
from export.graphs import _Graph, encoder_graph, step_graph
from export.quantize import normalised_tensors, quantize_columns, quantize_graph
from model.data import pad
from model.transformer import Transformer
from tests.export.conftest import SHAPES, Array, Stepper, build_model, open_graph, run_encoder

SOURCES = [[5, 9, 12, 7, 3], [8, 3], [6, 15, 3]]
TARGETS = [[2, 10, 11, 4], [2, 14, 15, 16], [2, 17, 4, 5]]
LENGTHS = [len(source) for source in SOURCES]


def quantized(model: Transformer) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    ranges = calibrate(model, SOURCES, TARGETS)
    return quantize_graph(encoder_graph(model), ranges), quantize_graph(step_graph(model), ranges)


def linear_graph(kind: str, weight: torch.Tensor, bias: torch.Tensor) -> onnx.ModelProto:
    """Returns y = f(x) W + b, where f is LayerNormalization, ReLU or nothing; `activation` is f(x)."""
    graph = _Graph("linear", np.float32)
    x = graph.input("x", np.float32, ["rows", weight.shape[1]])
    if kind == "norm":
        x = graph.layer_norm("activation", x, torch.nn.LayerNorm(weight.shape[1]))
    else:
        x = graph.node("Relu" if kind == "relu" else "Identity", [x], "activation")
    graph.linear("y", x, weight, bias)
    graph.output("activation", np.float32, ["rows", weight.shape[1]])
    graph.output("y", np.float32, ["rows", weight.shape[0]])
    return graph.build()


def run(graph: onnx.ModelProto, x: Array) -> dict[str, Array]:
    session = open_graph(graph)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"x": x}), strict=True))


def random_linear() -> tuple[torch.Tensor, torch.Tensor, Array]:
    generator = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(24, 32, generator=generator), torch.randn(24, generator=generator)
    x = torch.randn(6, 32, generator=generator).numpy()
    x *= np.array([1, 100, 0.01, 5, 1, 0], np.float32)[:, None]
    return weight, bias, x


def test_columns_are_rounded_to_the_nearest_of_255_levels() -> None:
    matrix = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32) * np.logspace(-4, 3, 7, dtype=np.float32)

    found, scales = quantize_columns(matrix)

    assert (found.dtype.name, scales.dtype.name, scales.shape) == ("int8", "float32", (7,))
    assert np.array_equal(np.abs(found).max(axis=0), [127] * 7)
    assert (np.abs(found * scales - matrix) <= scales * 0.5001).all()


def test_a_column_of_zeros_stays_zero() -> None:
    found, scales = quantize_columns(np.zeros((3, 2), np.float32))

    assert not found.any()
    assert np.isfinite(scales).all()


@pytest.mark.parametrize("kind", ["norm", "relu", "any"])
def test_the_error_of_a_linear_map_is_within_what_rounding_can_do(kind: str) -> None:
    weight, bias, x = random_linear()
    graph = linear_graph(kind, weight, bias)
    exact = run(graph, x)
    largest = float(np.abs(exact["activation"]).max())

    found = run(quantize_graph(graph, {"activation": largest}), x)

    a = np.abs(exact["activation"])
    steps = {"norm": np.full((6, 1), largest / 127), "relu": a.max(1, keepdims=True) / 255}
    x_error = steps.get(kind, a.max(1, keepdims=True) / 127) / 2
    w_error = np.abs(weight.numpy()).max(1) / 127 / 2
    bound = a.sum(1, keepdims=True) * w_error + x_error * np.abs(weight.numpy()).sum(1) + 32 * x_error * w_error
    assert (np.abs(found["y"] - exact["y"]) <= bound * 1.001 + 1e-5).all()
    assert np.abs(found["y"] - exact["y"]).max() > 0  # it is int8 indeed


@pytest.mark.parametrize("kind", ["norm", "relu", "any"])
def test_a_row_gives_the_same_bits_alone_and_among_others(kind: str) -> None:
    weight, bias, x = random_linear()
    graph = quantize_graph(linear_graph(kind, weight, bias), {"activation": 3.0})

    together = run(graph, x)["y"]

    for row in range(len(x)):
        assert np.array_equal(run(graph, x[row : row + 1])["y"][0], together[row])


def test_a_value_beyond_the_calibrated_range_is_clipped_and_harms_no_other_row() -> None:
    weight, bias, x = random_linear()
    graph = linear_graph("norm", weight, bias)

    narrow = run(quantize_graph(graph, {"activation": 0.5}), x)["y"]

    clipped = np.clip(run(graph, x)["activation"], -0.5, 0.5)
    expected = clipped @ weight.numpy().T + bias.numpy()
    np.testing.assert_allclose(narrow, expected, atol=0.5)


def test_steps_give_each_row_the_same_bits_alone_and_among_others(model: Transformer) -> None:
    encoder, step = quantized(model)
    cross = run_encoder(encoder, pad(SOURCES, 0).numpy(), LENGTHS)
    together, alone = (Stepper(step, model, cross, capacity=6) for _ in range(2))

    for position in range(4):
        ids, past = [target[position] for target in TARGETS], [position] * 3
        shared = together(ids, past, LENGTHS, [0, 1, 2], k=8)
        for row in range(3):
            own = alone([ids[row]], [position], [LENGTHS[row]], [row], k=8)
            for name in ("logits", "top_ids", "top_log_probs"):
                assert np.array_equal(own[name][0], shared[name][row]), name


def test_the_encoder_keeps_rows_apart_too(model: Transformer) -> None:
    encoder, _ = quantized(model)

    together = run_encoder(encoder, pad(SOURCES, 0).numpy(), LENGTHS)

    for row, source in enumerate(SOURCES):
        alone = run_encoder(encoder, np.array([source]), [len(source)])
        for one, all_rows in zip(alone, together, strict=True):
            np.testing.assert_allclose(one[0], all_rows[row, :, : len(source)], atol=1e-5)


def test_logits_stay_close_to_single_precision(model: Transformer) -> None:
    graphs = {"int8": quantized(model), "fp32": (encoder_graph(model), step_graph(model))}
    logits: dict[str, list[Array]] = {name: [] for name in graphs}
    for name, (encoder, step) in graphs.items():
        stepper = Stepper(step, model, run_encoder(encoder, pad(SOURCES, 0).numpy(), LENGTHS), capacity=6)
        for position in range(4):
            ids = [target[position] for target in TARGETS]
            logits[name].append(stepper(ids, [position] * 3, LENGTHS, [0, 1, 2])["logits"])

    found, expected = (np.stack(logits[name]) for name in ("int8", "fp32"))
    assert np.abs(found - expected).max() < 0.15 * np.abs(expected).max()
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.998


def test_every_linear_map_and_the_embedding_are_int8(model: Transformer) -> None:
    for before, after in zip((encoder_graph(model), step_graph(model)), quantized(model), strict=True):
        linear_maps = sum(node.op_type == "Gemm" for node in before.graph.node)
        kinds = [node.op_type for node in after.graph.node]
        assert "Gemm" not in kinds
        assert kinds.count("MatMulIntegerToFloat") == linear_maps
        names = {tensor.name for tensor in after.graph.initializer}
        assert "embedding.int8" in names
        assert not names & {"embedding", "decoder.0.ffn.hidden.weight", "encoder.0.ffn.hidden.weight"}
        used = {name for node in after.graph.node for name in node.input}
        assert names <= used


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
    graph = _Graph("lookup", np.float32)
    ids = graph.input("x", np.int64, ["rows"])
    graph.node("Gather", [graph.weight("embedding", model.embedding.tokens.weight), ids], "embedded")
    graph.output("embedded", np.float32, ["rows", model.config.d_model])
    return graph.build()


def test_calibration_knows_every_tensor_that_needs_a_range(model: Transformer) -> None:
    ranges = calibrate(model, SOURCES, TARGETS)

    for graph in (encoder_graph(model), step_graph(model)):
        needed = normalised_tensors(graph)
        assert needed
        assert needed <= ranges.keys()
        assert all(ranges[name] > 0 for name in needed)


def test_calibration_sees_the_largest_magnitude_of_all_sentences(model: Transformer) -> None:
    with torch.inference_mode():
        memories = [model.encode(torch.tensor([source]))[0] for source in SOURCES]

    ranges = calibrate(model, SOURCES, TARGETS)

    last = "encoder.norm" if model.config.norm == "pre" else f"encoder.{model.config.encoder_layers - 1}.ffn.norm"
    assert ranges[last] == pytest.approx(max(float(memory.abs().max()) for memory in memories))
    assert not any(module._forward_hooks for module in model.modules())


def test_a_missing_range_is_an_error(model: Transformer) -> None:
    with pytest.raises(KeyError, match="norm"):
        quantize_graph(step_graph(model), {})
