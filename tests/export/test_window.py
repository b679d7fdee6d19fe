"""The ring of a window, step by step: against torch's mask, and against the kernel over a whole cache."""

import dataclasses

import numpy as np
import onnx
import pytest
import torch
from onnx import helper

from export.graphs import encoder_graph, step_graph
from export.window import with_window
from model.checkpoint import Checkpoint
from model.data import pad
from model.transformer import Transformer
from tests.export.conftest import Array, Stepper, build_model, run_encoder

SOURCES = [[5, 9, 12, 7, 3], [8, 3], [6, 15, 3]]
LENGTHS = [len(source) for source in SOURCES]
STEPS = 20
ATOL = 1e-4  # float32, other order of sums: the design's bound for logits
TARGETS = np.random.default_rng(0).integers(4, 50, (3, STEPS))


def windowed(window: int) -> Transformer:
    return build_model(vocab_size=50, self_window=window)


def masked_by_the_kernel(model: Transformer, window: int) -> onnx.ModelProto:
    """The step of the same weights over caches that grow, of which the kernel attends to the last positions."""
    whole = build_model(vocab_size=50)
    whole.load_state_dict(model.state_dict())
    graph = step_graph(whole)
    for node in graph.graph.node:
        if node.op_type == "GroupQueryAttention" and node.input[3].startswith("self_"):
            node.attribute.append(helper.make_attribute("local_window_size", window))
    return graph


def run(step: Stepper, *, twice: bool = False) -> Array:
    """Feeds all targets, the second row 3 steps after the others; returns logits [row, position, V]."""
    found: list[list[Array]] = [[], [], []]
    for now in range(STEPS):
        rows = [row for row, start in enumerate((0, 3, 0)) if now >= start]
        past = [len(found[row]) for row in rows]
        ids, lengths = [int(TARGETS[row, at]) for row, at in zip(rows, past, strict=True)], [LENGTHS[r] for r in rows]
        for _ in range(1 + twice):
            logits = step(ids, past, lengths, rows)["logits"]
        for row, each in zip(rows, logits, strict=True):
            found[row].append(each)
    return np.array([each[: STEPS - 3] for each in found])


def opened(model: Transformer, graph: onnx.ModelProto) -> Stepper:
    cross = run_encoder(encoder_graph(model), pad(SOURCES, 0).numpy(), LENGTHS)
    return Stepper(graph, model, cross, STEPS)


@pytest.mark.parametrize("window", [1, 2, 5, 16, 24])
def test_a_ring_gives_the_logits_of_torchs_mask(window: int) -> None:
    model = windowed(window)
    with torch.inference_mode():
        expected = model(pad(SOURCES, 0), torch.from_numpy(TARGETS)).numpy()

    found = run(opened(model, step_graph(model)))

    np.testing.assert_allclose(found, expected[:, : STEPS - 3], atol=ATOL, rtol=0)


@pytest.mark.parametrize("window", [2, 5])
def test_a_ring_gives_the_logits_of_a_whole_cache_with_a_mask(window: int) -> None:
    model = windowed(window)
    whole = opened(build_model(vocab_size=50), masked_by_the_kernel(model, window))

    np.testing.assert_allclose(run(opened(model, step_graph(model))), run(whole), atol=ATOL, rtol=0)


def test_the_window_matters() -> None:
    one, other = (run(opened(model, step_graph(model))) for model in (windowed(2), windowed(3)))

    assert np.abs(one - other)[:, 3:].max() > 100 * ATOL
    assert np.abs(one - other)[:, :2].max() < ATOL


def test_a_step_of_a_ring_may_be_taken_again() -> None:
    model = windowed(4)
    once, twice = (run(opened(model, step_graph(model)), twice=twice) for twice in (False, True))

    assert np.array_equal(once, twice)


def test_the_recipe_in_the_facts_has_the_window(tiny_checkpoint: Checkpoint) -> None:
    found = with_window(tiny_checkpoint, 7)

    assert found.config == dataclasses.replace(tiny_checkpoint.config, self_window=7)
    assert found.facts["recipe"]["model"]["self_window"] == 7
    assert "self_window" not in tiny_checkpoint.facts["recipe"]["model"]
    assert with_window(dataclasses.replace(tiny_checkpoint, facts={"name": "x"}), 7).facts == {"name": "x"}
