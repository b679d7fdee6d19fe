"""The proof of one-pass networks: it passes what is right, and finds what is wrong."""

from collections.abc import Iterator

import pytest
import torch

from export.id_translator import IdTranslator, open_translator
from export.verify import VerificationError
from export.verify_one_pass import check_lengths, check_positions, check_readings
from model.checkpoint import Checkpoint
from model.one_pass import OnePass
from server.bundle.bundle import Bundle
from server.runtime.one_pass import OnePassRunner
from server.runtime.runner import open_runner


@pytest.fixture(scope="module")
def runner(one_pass_bundle: Bundle) -> OnePassRunner:
    opened = open_runner(one_pass_bundle, "cpu-fp32", "cpu")
    assert isinstance(opened, OnePassRunner)
    return opened


@pytest.fixture(scope="module")
def translator(one_pass_bundle: Bundle, runner: OnePassRunner) -> Iterator[IdTranslator]:
    with open_translator(runner, one_pass_bundle) as opened:
        yield opened


@pytest.fixture
def model(one_pass_checkpoint: Checkpoint) -> OnePass:
    network = one_pass_checkpoint.build_network()
    assert isinstance(network, OnePass)
    return network


@pytest.fixture
def other(model: OnePass) -> OnePass:
    """A network that is not what was exported."""
    with torch.no_grad():
        model.upsampling.weight[0] += 0.5
    return model


def test_what_was_exported_passes(
    model: OnePass, runner: OnePassRunner, translator: IdTranslator, sources: list[list[int]]
) -> None:
    some = sources[:40]
    found = check_positions(model, runner, some)
    assert found["same_alone"] == found["sentences"] == 40
    assert found["largest_difference"] < 1e-4
    for beam_size in (1, 4):
        assert check_readings(model, translator, some, beam_size)["equal"] == 40
    assert check_lengths(model, translator, some)["equal"] == 40


def test_another_network_is_found_out(
    other: OnePass, runner: OnePassRunner, translator: IdTranslator, sources: list[list[int]]
) -> None:
    with pytest.raises(VerificationError, match="differ from the model's by"):
        check_positions(other, runner, sources[:8])
    with pytest.raises(VerificationError, match="beam size 4: differs from the oracle"):
        check_readings(other, translator, sources[:8], 4)
    with pytest.raises(VerificationError, match="given lengths: differs from the oracle"):
        check_lengths(other, translator, sources[:8])


def test_a_manifest_says_what_was_compared(one_pass_bundle: Bundle, tiny_bundle: Bundle) -> None:
    parity = one_pass_bundle.manifest.parity
    assert {"positions", "greedy_ids", "beam_4_ids", "exact_lengths", "int8_rows_apart"} <= parity.keys()
    assert {"step_logits", "greedy_ids", "beam_4_ids"} <= tiny_bundle.manifest.parity.keys()
    assert "positions" not in tiny_bundle.manifest.parity
