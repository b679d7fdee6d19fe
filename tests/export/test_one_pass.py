"""The graph of a one-pass network against torch, alone and in batches, in float32 and int8."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from export.calibrate import calibrate_one_pass
from export.files import save_graphs
from export.graph import linear_inputs
from export.one_pass import one_pass_graph
from export.quantize import quantize_graph
from model.ctc_search import exact_length, keep_top, prefix_beam
from model.data import pad
from model.one_pass import UPSAMPLING, OnePass
from server.bundle import graphs
from server.bundle.graphs import ONE_PASS_FILE
from tests.export.conftest import Array, open_graph
from tests.model.test_one_pass import build

SOURCES = [[5, 9, 12, 7, 3], [8, 3], [6, 15, 3]]
SHAPES: dict[str, dict[str, Any]] = {
    "pre-bias": {"norm": "pre", "output_bias": True},
    "post-untied": {"vocab_size": 45, "tied_output": False, "positions": "learned", "activation": "gelu"},
    "blocks": {"vocab_size": 4096, "norm": "pre", "embedding_norm": True},
    "sides": {"norm": "pre", "encoder_num_heads": 4, "encoder_ffn_dim": 24, "head_width": 24, "decoder_layers": 3},
}
ATOL = 1e-4


@pytest.fixture(params=SHAPES)
def model(request: pytest.FixtureRequest) -> OnePass:
    return build(**SHAPES[request.param])


def quantized(model: OnePass, directory: Path) -> onnx.ModelProto:
    save_graphs(directory, [(ONE_PASS_FILE, one_pass_graph(model))])
    return quantize_graph(one_pass_graph(model), calibrate_one_pass(directory / ONE_PASS_FILE, SOURCES))


def run(graph: onnx.ModelProto, sources: list[list[int]], k: int, filler: int = 0, with_log_probs: bool = True) -> Any:
    """Returns the outputs [B, 2S, ...] by name."""
    source_ids = pad(sources, filler).numpy()
    session = open_graph(graph)
    names = [output.name for output in session.get_outputs()]
    feeds: dict[str, Array] = {
        "source_ids": source_ids,
        "source_lengths": np.array([len(ids) for ids in sources], np.int32),
        "top_k": np.array([k]),
        "with_log_probs": np.array([with_log_probs]),
    }
    outputs = dict(zip(names, session.run(names, feeds), strict=True))
    return {name: value.reshape(len(sources), 2 * source_ids.shape[1], -1) for name, value in outputs.items()}


@torch.inference_mode()
def of_torch(model: OnePass, source: list[int]) -> Array:
    log_probs: Array = model(torch.tensor([source]))[0].log_softmax(-1).numpy()
    return log_probs


def test_the_graph_gives_the_best_tokens_of_torch_and_the_blank(model: OnePass) -> None:
    found = run(one_pass_graph(model), SOURCES, k=8)

    assert set(found) == {"top_ids", "top_log_probs", "blank_log_probs"}  # no logits
    for row, source in enumerate(SOURCES):
        expected = of_torch(model, source)
        count = 2 * len(source)
        ids, values = found["top_ids"][row, :count], found["top_log_probs"][row, :count]
        assert ids.shape == (count, 8)
        np.testing.assert_allclose(values, np.sort(expected)[:, :-9:-1], atol=ATOL, rtol=0)
        np.testing.assert_allclose(np.take_along_axis(expected, ids, axis=1), values, atol=ATOL, rtol=0)
        blank = model.config.bos_id
        np.testing.assert_allclose(found["blank_log_probs"][row, :count, 0], expected[:, blank], atol=ATOL, rtol=0)


def test_without_log_probabilities_the_values_are_logits(model: OnePass) -> None:
    graph = one_pass_graph(model)
    with torch.inference_mode():
        expected = model(torch.tensor(SOURCES[:1]))[0].max(dim=-1)

    found = run(graph, SOURCES[:1], k=1, with_log_probs=False)

    assert found["top_ids"].ravel().tolist() == expected.indices.tolist()
    np.testing.assert_allclose(found["top_log_probs"].ravel(), expected.values.numpy(), atol=ATOL, rtol=0)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_sentence_has_the_same_bits_alone_in_a_batch_and_with_any_padding(
    model: OnePass, precision: str, tmp_path: Path
) -> None:
    graph = one_pass_graph(model) if precision == "fp32" else quantized(model, tmp_path)

    batches = [run(graph, SOURCES, k=8), run(graph, SOURCES, k=8, filler=11)]

    for row, source in enumerate(SOURCES):
        for name, alone in run(graph, [source], k=8).items():
            for together in batches:
                assert np.array_equal(together[name][row, : 2 * len(source)], alone[0]), name


def test_int8_stays_close_to_single_precision(model: OnePass, tmp_path: Path) -> None:
    graph = quantized(model, tmp_path)

    assert not [node for node in graph.graph.node if node.op_type == "Gemm"]
    found = run(graph, SOURCES, k=1)
    for row, source in enumerate(SOURCES):
        expected = of_torch(model, source)
        ids = found["top_ids"][row, : 2 * len(source)]
        lost = expected.max(axis=1) - np.take_along_axis(expected, ids, axis=1)[:, 0]
        assert lost.max() < 0.1 * np.ptp(expected, axis=1).max()  # what it chooses is nearly the best


def test_every_linear_map_is_calibrated_with_real_positions_alone(model: OnePass, tmp_path: Path) -> None:
    graph = one_pass_graph(model)
    save_graphs(tmp_path, [(ONE_PASS_FILE, one_pass_graph(model))])

    together = calibrate_one_pass(tmp_path / ONE_PASS_FILE, SOURCES)
    alone = [calibrate_one_pass(tmp_path / ONE_PASS_FILE, [source]) for source in SOURCES]

    assert sorted(together) == linear_inputs(graph)
    for name, largest in together.items():
        assert largest == pytest.approx(max(each[name] for each in alone), rel=1e-5)


def test_a_search_of_what_the_graph_returns_is_that_of_torch(model: OnePass) -> None:
    blank = model.config.bos_id
    found = run(one_pass_graph(model), SOURCES, k=4)

    for row, source in enumerate(SOURCES):
        expected = keep_top(torch.from_numpy(of_torch(model, source)), 4, blank)
        positions = torch.full_like(expected, -torch.inf)
        ids, values, of_blank = (
            torch.from_numpy(found[name][row, : len(expected)])
            for name in ("top_ids", "top_log_probs", "blank_log_probs")
        )
        positions.scatter_(1, ids, values)
        positions[:, blank] = of_blank[:, 0]
        ours, theirs = (prefix_beam(each, blank, 4) for each in (positions, expected))
        assert [each.ids for each in ours] == [each.ids for each in theirs]
        assert [each.log_prob for each in ours] == pytest.approx([each.log_prob for each in theirs], abs=1e-3)
        exact = [exact_length(each, blank, len(source)) for each in (positions, expected)]
        assert exact[0].ids == exact[1].ids
        assert len(exact[0].ids) == len(source)


def test_the_server_counts_as_many_positions_for_a_token_as_the_network_has() -> None:
    assert graphs.UPSAMPLING == UPSAMPLING
