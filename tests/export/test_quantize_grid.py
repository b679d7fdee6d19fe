import numpy as np
import pytest
import torch

from export.quantize import quantize_graph
from tests.export.quantized import activation, linear_graph, random_linear, run


def on_grid(weight: torch.Tensor) -> torch.Tensor:
    """Returns a weight as a file of int8 with one scale has it."""
    multiplier = 127 / weight.abs().max()
    return (weight * multiplier).round() / multiplier


def test_a_normalised_tensor_is_two_bytes_where_weights_were_int8_before() -> None:
    weight, bias, x = random_linear()
    weight = on_grid(weight)
    graph = linear_graph("norm", weight, bias)
    inputs = activation("norm", x)
    largest = np.array(np.abs(inputs).max())

    found = run(quantize_graph(graph, {"activation": largest}), x)

    bound = largest / 127 / 254 / 2 * np.abs(weight.numpy()).sum(1)
    assert (np.abs(found - run(graph, x)) <= bound * 1.01 + 1e-5).all()


@pytest.mark.parametrize("kind", ["relu", "any", "silu"])
def test_what_the_decoder_reads_of_no_residual_stream_is_one_byte(kind: str) -> None:
    weight, bias, _ = random_linear()
    graph = quantize_graph(linear_graph(kind, on_grid(weight), bias), {"activation": np.array(3.0, np.float32)})
    assert [node.op_type for node in graph.graph.node][-2:] == ["QuantizeLinear", "MatMulIntegerToFloat"]


def test_a_row_of_two_bytes_gives_the_same_bits_alone_and_clips_what_is_beyond_its_range() -> None:
    weight, bias, x = random_linear()
    weight = on_grid(weight)
    graph = quantize_graph(linear_graph("norm", weight, bias), {"activation": np.array(0.5, np.float32)})

    together = run(graph, x)

    for row in range(len(x)):
        assert np.array_equal(run(graph, x[row : row + 1])[0], together[row])
    expected = np.clip(activation("norm", x), -0.5, 0.5) @ weight.numpy().T + bias.numpy()
    np.testing.assert_allclose(together, expected, atol=0.5)


@pytest.mark.parametrize("kind", ["relu", "any", "silu"])
def test_all_that_the_encoder_multiplies_is_two_bytes(kind: str) -> None:
    weight, bias, x = random_linear()
    graph = linear_graph(kind, on_grid(weight), bias)
    graph.graph.name = "encoder"
    largest = np.array(np.abs(activation(kind, x)).max())

    found = run(quantize_graph(graph, {"activation": largest}), x)

    bound = largest / 127 / 254 / 2 * np.abs(weight.numpy()).sum(1)
    assert (np.abs(found - run(graph, x)) <= bound * 1.05 + 1e-4).all()
