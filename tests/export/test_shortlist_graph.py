"""The step that projects to columns the server chose gives what the full step gives, restricted to the candidates."""

from typing import Any

import numpy as np
import onnx
import pytest

from export.graphs import encoder_graph, step_graph
from export.projection import MAX_TOP_K, SHORTLIST_BLOCK
from export.quantize import quantize_graph
from model.data import pad
from model.transformer import Transformer
from server.bundle.graphs import CANDIDATES, EMBEDDING, StepForm
from server.runtime.columns import Columns
from server.runtime.processor import has_int8_dot_product
from tests.export.conftest import SHAPES, Array, Stepper, build_model, calibrated, run_encoder

SOURCES = [[5, 9, 12, 7, 3], [8, 3], [6, 15, 3]]
TARGETS = [[2, 10, 11, 4], [2, 14, 15, 16], [2, 17, 4, 5]]
LENGTHS = [len(source) for source in SOURCES]
INT8_WITHOUT_SATURATION = pytest.param(
    "int8",
    marks=pytest.mark.skipif(not has_int8_dot_product(), reason="without int8 dot products these sums may saturate"),
)
CHOICES = [np.arange(0, 256, 3), np.arange(1, 200, 2), np.array([*range(3, 40), 77, 255])]


def steps(model: Transformer, precision: str) -> tuple[Stepper, Stepper, Array]:
    """The full step, the one with a shortlist, and the output projection that its columns come from."""
    encoder, full = encoder_graph(model), step_graph(model)
    short = step_graph(model, form=StepForm(has_shortlist=True))
    if precision == "int8":
        ranges = calibrated(encoder, full, SOURCES, TARGETS)
        encoder, full, short = (quantize_graph(graph, ranges) for graph in (encoder, full, short))
    table = next(tensor for tensor in full.graph.initializer if tensor.name == EMBEDDING)
    cross = run_encoder(encoder, pad(SOURCES, 0).numpy(), LENGTHS)
    return Stepper(full, model, cross, 6), Stepper(short, model, cross, 6), onnx.numpy_helper.to_array(table)


@pytest.fixture(params=["post", "pre", "marian", "untied-bias"])
def model(request: pytest.FixtureRequest) -> Transformer:
    return build_model(**{**SHAPES[request.param], "vocab_size": 256})


def feeds(columns: Columns, rows: list[int]) -> dict[str, Any]:
    return {
        "shortlist_weight": columns.weight,
        "shortlist_ids": columns.ids,
        "candidates": columns.candidates[rows],
    }


@pytest.mark.parametrize("precision", ["fp32", INT8_WITHOUT_SATURATION])
def test_each_row_chooses_among_its_own_candidates_as_the_full_step_would(model: Transformer, precision: str) -> None:
    full, short, table = steps(model, precision)
    columns = Columns(table, max_rows=3)
    for row, candidates in enumerate(CHOICES):
        columns.admit(row, [candidates.astype(np.int32)])

    for position in range(4):
        ids, past = [target[position] for target in TARGETS], [position] * 3
        logits = full(ids, past, LENGTHS, [0, 1, 2], k=1)["logits"]
        found = short(ids, past, LENGTHS, [0, 1, 2], k=MAX_TOP_K, **feeds(columns, [0, 1, 2]))

        for row, candidates in enumerate(CHOICES):
            allowed = logits[row, candidates].astype(np.float64)
            best = np.argsort(-allowed, kind="stable")[:MAX_TOP_K]
            assert np.array_equal(found["top_ids"][row], candidates[best])
            log_probs = allowed - np.log(np.exp(allowed - allowed.max()).sum()) - allowed.max()
            np.testing.assert_allclose(found["top_log_probs"][row], log_probs[best], atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_row_gives_the_same_alone_and_among_rows_with_other_candidates(model: Transformer, precision: str) -> None:
    _, together, table = steps(model, precision)
    alone = steps(model, precision)[1]
    shared = Columns(table, max_rows=3)
    for row, candidates in enumerate(CHOICES):
        shared.admit(row, [candidates.astype(np.int32)])

    ids = [target[0] for target in TARGETS]
    found = together(ids, [0] * 3, LENGTHS, [0, 1, 2], k=8, **feeds(shared, [0, 1, 2]))
    for row, candidates in enumerate(CHOICES):
        own = Columns(table, max_rows=3)
        own.admit(0, [candidates.astype(np.int32)])
        single = alone([ids[row]], [0], [LENGTHS[row]], [row], k=8, **feeds(own, [0]))
        assert np.array_equal(single["top_ids"][0], found["top_ids"][row])
        np.testing.assert_allclose(single["top_log_probs"][0], found["top_log_probs"][row], atol=1e-6)


def test_the_fewest_candidates_are_whole_blocks_as_many_as_best_tokens() -> None:
    assert (CANDIDATES // SHORTLIST_BLOCK, CANDIDATES % SHORTLIST_BLOCK) == (MAX_TOP_K, 0)
