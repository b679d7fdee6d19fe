"""Retention step by step: against torch's matrix of decays, whatever rows did before, and however often."""

import numpy as np
import pytest
import torch

from export.graphs import encoder_graph, step_graph
from model.data import pad
from model.transformer import Transformer
from tests.export.conftest import Array, Stepper, build_model, run_encoder

SOURCES = [[5, 9, 12, 7, 3], [8, 3], [6, 15, 3]]
LENGTHS = [len(source) for source in SOURCES]
STEPS = 20
ATOL = 1e-4  # float32, other order of sums: the design's bound for logits
TARGETS = np.random.default_rng(0).integers(4, 50, (3, STEPS))


@pytest.fixture(scope="module")
def model() -> Transformer:
    return build_model(vocab_size=50, decoder_mixer="retention")


def run(model: Transformer, *, times: int = 1, before: float = 0.0) -> Array:
    """Feeds all targets, the second row 3 steps after the others; returns logits [row, position, V]."""
    cross = run_encoder(encoder_graph(model), pad(SOURCES, 0).numpy(), LENGTHS)
    step = Stepper(step_graph(model), model, cross, STEPS)
    for state in step.self_caches.values():
        state[...] = before
    found: list[list[Array]] = [[], [], []]
    for now in range(STEPS):
        rows = [row for row, start in enumerate((0, 3, 0)) if now >= start]
        past = [len(found[row]) for row in rows]
        ids, lengths = [int(TARGETS[row, at]) for row, at in zip(rows, past, strict=True)], [LENGTHS[r] for r in rows]
        for _ in range(times):
            logits = step(ids, past, lengths, rows)["logits"]
        for row, each in zip(rows, logits, strict=True):
            found[row].append(each)
    return np.array([each[: STEPS - 3] for each in found])


@torch.inference_mode()
def test_steps_give_the_logits_of_the_whole(model: Transformer) -> None:
    expected = model(pad(SOURCES, 0), torch.from_numpy(TARGETS))[:, : STEPS - 3]

    np.testing.assert_allclose(run(model), expected.numpy(), atol=ATOL)


def test_a_step_that_is_taken_three_times_is_the_same(model: Transformer) -> None:
    assert np.array_equal(run(model, times=3), run(model))


def test_what_a_row_held_before_does_not_matter(model: Transformer) -> None:
    assert np.array_equal(run(model, before=1e3), run(model))
