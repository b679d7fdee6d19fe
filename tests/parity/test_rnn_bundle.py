"""A recurrent network from checkpoint to answers: trained a little, exported and proven, checked, and served."""

import dataclasses
import shutil
from pathlib import Path

import pytest
import sentencepiece
import torch

from export.probe_bundle import main
from export.restore import restore_checkpoint
from export.subject import DevSet
from model.checkpoint import Checkpoint
from model.data import make_batch
from model.families import FAMILIES
from model.recipe import TrainingConfig
from server.bundle.bundle import Bundle, open_bundle
from tests.parity.ladder import BundleTests, exported


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Checkpoint, dev_set: DevSet) -> Checkpoint:
    """A network with the tiny model's vocabulary that has seen the dev set some times."""
    torch.manual_seed(0)
    config = dataclasses.replace(
        tiny_checkpoint.config,
        family="recurrent",
        attention_score="general",
        num_heads=1,
        d_model=32,
        head_width=64,
        encoder_layers=1,
        decoder_layers=2,
        dropout=0.0,
    )
    family = FAMILIES["recurrent"]
    model = family.network(config)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=tiny_checkpoint.tokenizer)
    pairs = list(zip(pieces.encode(dev_set.sources), pieces.encode(dev_set.references), strict=True))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(60):
        batch = make_batch(pairs[step % 4 :: 4], config)
        optimizer.zero_grad()
        (family.loss(model, batch, TrainingConfig()) / len(pairs)).backward()
        optimizer.step()
    facts = {**tiny_checkpoint.facts, "recipe": {"model": dataclasses.asdict(config)}}
    return dataclasses.replace(tiny_checkpoint, config=config, weights=dict(model.state_dict()), facts=facts)


@pytest.fixture(scope="module")
def bundle(checkpoint: Checkpoint, dev_set: DevSet, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Both variants for CPUs; the proofs of the export have passed."""
    return exported(checkpoint, dev_set, tmp_path_factory, ("cpu-fp32", "cpu-int8"))


class TestRecurrent(BundleTests):
    def test_the_state_is_fixed_and_nothing_aligns(self, bundle: Bundle) -> None:
        assert [(state.kind, state.shape) for state in bundle.manifest.states] == [("fixed", (2, 4, 64))]
        assert (bundle.manifest.family, bundle.manifest.alignment) == ("recurrent", None)


def test_the_checkpoint_cannot_be_restored(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="of the family recurrent, which cannot be restored"):
        restore_checkpoint(Path(bundle.directory))


def test_a_probe_keeps_what_the_export_has_found(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "rnn"
    shutil.copytree(bundle.directory, directory)
    monkeypatch.setattr("sys.argv", ["babelserve-probe", str(directory)])

    main()

    manifest = open_bundle(directory).manifest
    assert (manifest.alignment, manifest.confidence) == (None, bundle.manifest.confidence)
    assert "aligns" not in capfd.readouterr().out
