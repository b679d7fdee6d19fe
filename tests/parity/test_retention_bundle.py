"""A decoder with retention from checkpoint to answers: trained a little, exported and proven, checked, and served."""

import dataclasses
from pathlib import Path

import pytest

from export.bundle import export_bundle
from export.subject import DevSet, subject_of
from model.checkpoint import Checkpoint
from model.recipe_file import load_recipe
from model.train import prepare
from server.bundle.bundle import Bundle
from tests.parity import ladder
from tests.parity.served import check_lines

DATA = Path(__file__).parents[1] / "data"
UPDATES = 150


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """The tiny model with retention where it had self-attention, after some updates to get used to it."""
    recipe, out = load_recipe(DATA / "tiny.toml"), tmp_path_factory.mktemp("run")
    config = dataclasses.replace(tiny_checkpoint.config, decoder_mixer="retention")
    training = dataclasses.replace(
        recipe.training, optimizer="muon", lr_scale=0.5, warmup_steps=50, max_steps=UPDATES, cooldown_steps=UPDATES // 2
    )
    (out / "tokenizer.model").write_bytes(tiny_checkpoint.tokenizer)
    trainer = prepare(dataclasses.replace(recipe, model=config, training=training), DATA, out)
    trainer.model.load_state_dict(
        {
            name: tiny_checkpoint.weights.get(name.replace("retention", "self_attention"), weight)
            for name, weight in trainer.model.state_dict().items()
        }
    )
    for batches in trainer._updates():
        trainer.update(batches)
    return dataclasses.replace(tiny_checkpoint, config=config, weights=trainer.model.state_dict())


@pytest.fixture(scope="module")
def bundle(checkpoint: Checkpoint, dev_set: DevSet, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """All variants; the proofs of the export have passed."""
    out = tmp_path_factory.mktemp("bundles") / "retention"
    return export_bundle(subject_of(checkpoint), out, dev_set, version="0", max_bleu_loss=5.0)


def test_the_export_proves_steps_and_ids_equal(bundle: Bundle) -> None:
    parity, config = bundle.manifest.parity, bundle.manifest.dimensions

    assert [(state.kind, state.shape) for state in bundle.manifest.states] == [
        ("fixed", (2, config.d_model, config.head_dim))
    ] * config.decoder_layers
    assert 0 < parity["step_logits"]["largest_difference"] < 1e-4
    assert parity["greedy_ids"]["equal"] + len(parity["greedy_ids"]["near_ties"]) == 200
    assert parity["int8_rows_apart"]["same_alone"] >= 198


def test_a_bundle_with_retention_passes_its_check(bundle: Bundle) -> None:
    assert sum("passes the golden sentence" in line for line in check_lines(bundle)) >= 2


@pytest.mark.parametrize("beam_size", [1, 4])
def test_torch_steps_batches_and_a_server_say_the_same(checkpoint: Checkpoint, bundle: Bundle, beam_size: int) -> None:
    limits = bundle.manifest.limits
    texts, sources = ladder.captions(checkpoint, limits.max_source_tokens)

    expected = ladder.of_torch(checkpoint, sources, beam_size, limits.max_target_tokens)

    assert len(sources) == ladder.NUM_SENTENCES
    assert ladder.alone(bundle, "cpu-fp32", sources, beam_size) == expected
    assert ladder.together(bundle, "cpu-fp32", sources, beam_size) == expected
    assert ladder.served(bundle, "cpu-fp32", texts, beam_size) == ladder.spelled(checkpoint, expected)


def test_int8_keeps_sentences_apart_and_is_served(checkpoint: Checkpoint, bundle: Bundle) -> None:
    texts, sources = ladder.captions(checkpoint, bundle.manifest.limits.max_source_tokens)

    expected = ladder.alone(bundle, "cpu-int8", sources, 4)

    assert ladder.together(bundle, "cpu-int8", sources, 4) == expected
    assert ladder.served(bundle, "cpu-int8", texts, 4) == ladder.spelled(checkpoint, expected)
