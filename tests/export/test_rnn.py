"""The graphs of recurrent networks: torch's teacher forcing, step by step, alone and shared, and the same in int8."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray

from export.bundle import export_bundle
from export.graphs import encoder_graph, step_graph
from export.quantize import quantize_graph
from export.subject import DevSet, subject_of
from model.checkpoint import Checkpoint
from model.config import AttentionScore
from model.data import pad
from model.rnn import RecurrentNetwork
from server.bundle.graphs import StepForm, step_controls
from server.bundle.states import STATE_PLACES
from tests.export.conftest import calibrated, open_graph
from tests.model.test_rnn import SCORES, build

SOURCES = [[5, 6, 7, 8, 9, 10, 3], [9, 3], [4, 11, 12, 3]]
TARGETS = [[2, 11, 12, 13, 20, 21], [2, 14, 15, 16, 21, 22], [2, 5, 6, 7, 8, 9]]
LENGTHS = np.array([len(ids) for ids in SOURCES], np.int32)
CACHES = ("cross_key.0", "cross_value.0")
Arrays = dict[str, NDArray[Any]]


def encoded(graph: onnx.ModelProto, spare: int = 0) -> Arrays:
    """Returns the caches of `SOURCES`, with so many more positions of what nobody may read."""
    feeds = {"source_ids": pad(SOURCES, 30).numpy(), "source_lengths": LENGTHS}
    caches = dict(zip(CACHES, open_graph(graph).run(CACHES, feeds), strict=True))
    return {name: np.concatenate([cache, cache[:, :, :1].repeat(spare, 2)], 2) for name, cache in caches.items()}


def stepped(graph: onnx.ModelProto, model: RecurrentNetwork, caches: Arrays, beams: int = 1) -> NDArray[np.float32]:
    """Returns the logits of `TARGETS`, [rows, T, V], each taken twice; a sentence has so many equal rows."""
    session, config = open_graph(graph), model.config
    num_rows = beams * len(SOURCES)
    rng = np.random.default_rng(0)
    state = rng.normal(size=(num_rows, STATE_PLACES, 2 * config.decoder_layers, config.head_dim)).astype(np.float32)
    slot_rows = np.arange(num_rows).reshape(-1, beams)
    shared = np.concatenate([slot_rows, slot_rows[:, :1].repeat(4 - beams, 1)], 1) if beams > 1 else None
    found = []
    for position, ids in enumerate(np.array(TARGETS).repeat(beams, 0).T):
        past = np.full(num_rows, position, np.int32)
        controls = step_controls(ids, past, LENGTHS.repeat(beams), slot_rows=shared)
        for _ in range(2):
            logits, state = session.run(["logits", "new_self_state"], {**controls, **caches, "self_state": state})
        found.append(logits)
    return np.stack(found, 1)


@pytest.mark.parametrize("score", SCORES)
@torch.inference_mode()
def test_steps_are_teacher_forcing_whatever_the_row_and_the_cache_held_before(score: AttentionScore) -> None:
    model = build(score)

    found = stepped(step_graph(model), model, encoded(encoder_graph(model), spare=3))

    expected = model(pad(SOURCES, 0), torch.tensor(TARGETS)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("beams", [2, 4])
@pytest.mark.parametrize("score", SCORES)
@torch.inference_mode()
def test_rows_that_share_a_slot_compute_what_they_do_alone(score: AttentionScore, beams: int) -> None:
    model = build(score)

    found = stepped(step_graph(model, form=StepForm(shares_slots=True)), model, encoded(encoder_graph(model)), beams)

    expected = model(pad(SOURCES, 0), torch.tensor(TARGETS)).numpy().repeat(beams, 0)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("score", SCORES)
@torch.inference_mode()
def test_int8_is_close_and_its_caches_are_bytes(score: AttentionScore) -> None:
    model = build(score)
    encoder, step = encoder_graph(model), step_graph(model)
    ranges = calibrated(encoder, step, SOURCES, TARGETS)

    caches = encoded(quantize_graph(encoder, ranges))
    found = stepped(quantize_graph(step, ranges), model, caches)

    expected = model(pad(SOURCES, 0), torch.tensor(TARGETS)).numpy()
    assert {cache.dtype for cache in caches.values()} == {np.dtype(np.int8)}
    assert 0 < np.abs(found - expected).max() < 0.03 * np.abs(expected).max()


def test_a_variant_for_gpus_is_refused(tiny_checkpoint: Checkpoint, dev_set: DevSet, tmp_path: Path) -> None:
    model = build()
    checkpoint = Checkpoint(
        config=model.config,
        weights=dict(model.state_dict()),
        tokenizer=tiny_checkpoint.tokenizer,
        facts=tiny_checkpoint.facts,
    )

    with pytest.raises(ValueError, match="some of cpu-fp32, cpu-int8 for the family recurrent, not cuda-fp16"):
        export_bundle(subject_of(checkpoint), tmp_path / "out", dev_set, version="1", variants=["cuda-fp16"])
    assert not (tmp_path / "out").exists()
