"""A decoder with SSRUs from checkpoint to answers: exported and proven, checked, and served."""

import dataclasses

import pytest
import torch

from export.subject import DevSet
from model.checkpoint import Checkpoint
from server.bundle.bundle import Bundle
from tests.parity.ladder import BundleTests, exported


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Checkpoint) -> Checkpoint:
    """The tiny model with an SSRU where it had self-attention: an average, of values as they were, that fades."""
    config = dataclasses.replace(tiny_checkpoint.config, decoder_mixer="ssru")
    weights = {name: weight.float() for name, weight in tiny_checkpoint.weights.items()}
    for i in range(config.decoder_layers):
        taken = {name: weights.pop(name) for name in list(weights) if f"decoder.{i}.self_attention." in name}
        qkv, output = (taken[f"decoder.{i}.self_attention.{part}.weight"] for part in ("qkv", "output"))
        value = output @ qkv[2 * config.d_model :]
        gate = torch.randn(value.shape, generator=torch.Generator().manual_seed(i)) / config.d_model**0.5
        weights[f"decoder.{i}.ssru.projection.weight"] = torch.cat([gate, value])
        weights[f"decoder.{i}.ssru.projection.bias"] = torch.zeros(2 * config.d_model)
    return dataclasses.replace(tiny_checkpoint, config=config, weights=weights)


@pytest.fixture(scope="module")
def bundle(checkpoint: Checkpoint, dev_set: DevSet, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """All variants; the proofs of the export have passed."""
    return exported(checkpoint, dev_set, tmp_path_factory)


class TestSSRU(BundleTests):
    def test_the_state_is_fixed(self, bundle: Bundle) -> None:
        assert [state.kind for state in bundle.manifest.states] == ["fixed"]
        assert {"copy_rows.onnx", "copy_states.onnx"} <= bundle.manifest.variants["cuda-fp16"].files.keys()
