"""A decoder with retention from checkpoint to answers: trained a little, exported and proven, checked, and served."""

import dataclasses
from pathlib import Path

import pytest

from export.subject import DevSet
from model.checkpoint import Checkpoint
from model.recipe_file import load_recipe
from model.train import prepare
from server.bundle.bundle import Bundle
from tests.parity.ladder import BundleTests, exported

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
    return exported(checkpoint, dev_set, tmp_path_factory)


class TestRetention(BundleTests):
    def test_the_states_are_fixed(self, bundle: Bundle) -> None:
        config = bundle.manifest.dimensions

        assert [(state.kind, state.shape) for state in bundle.manifest.states] == [
            ("fixed", (2, config.d_model, config.head_dim))
        ] * config.decoder_layers
