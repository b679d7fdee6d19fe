"""Recurrent networks: the same ids from the oracle, from batches that change with every step, and from a row alone."""

import dataclasses

import pytest
import torch

from model.config import AttentionScore, TransformerConfig
from model.rnn import RecurrentNetwork
from model.search import search
from server.bundle.bundle import Bundle
from server.runtime.host_decoder import HostDecoder
from server.runtime.processor import has_int8_dot_product
from tests.parity.test_networks import MAX_TOKENS, WIDTHS, Network, bundled, twice

NUM_SOURCES = 300


@pytest.fixture(scope="module", params=["none", "dot", "general", "additive"])
def network(request: pytest.FixtureRequest, tiny_bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Network:
    score: AttentionScore = request.param
    torch.manual_seed(1)
    config = TransformerConfig(
        family="recurrent",
        attention_score=score,
        vocab_size=60,
        source_vocab_size=50 if score == "dot" else None,
        d_model=24,
        num_heads=1,
        head_width=32,
        encoder_layers=1 if score == "none" else 2,
        decoder_layers=3 if score == "general" else 2,
        output_bias=score != "additive",
        tied_output=score != "additive",
    )
    model = RecurrentNetwork(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():  # the source must outweigh what is the same for all
            if name.startswith(("encoder", "decoder")) and weight.dim() > 1:
                weight.mul_(2.5)
        model.output_weight.mul_(3)
        model.output_weight[config.eos_id] = model.output_weight[4:16].sum(0) / 2  # some sentences end
    directory = tmp_path_factory.mktemp(score)
    return bundled(model, tiny_bundle, directory, ("cpu-fp32", "cpu-int8"), NUM_SOURCES)


@pytest.fixture(scope="module")
def some(network: Network) -> Network:
    """The network with fewer sources, for what takes long."""
    return dataclasses.replace(network, sources=network.sources[:60], answers={})


def test_single_precision_gives_the_ids_of_the_oracle(network: Network) -> None:
    found = network.run("cpu-fp32")

    for kind, width in enumerate(WIDTHS):  # of sentence i it is WIDTHS[i % 3]
        expected = search(network.model, network.sources[kind::3], beam_size=width, max_tokens=MAX_TOKENS)
        assert [list(ids) for ids in found[kind::3]] == [hypotheses[0].ids for hypotheses in expected]
    assert len(set(found)) > NUM_SOURCES / 3  # the sources matter
    assert len({len(ids) for ids in found}) > 3


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
def test_rows_keep_apart(some: Network, variant: str) -> None:

    assert some.run(variant) == some.alone(variant)


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
def test_a_shortlist_of_all_tokens_changes_nothing(some: Network, variant: str) -> None:
    with_all, without = some.run(variant, use_shortlist=True), some.run(variant)

    saturates = variant == "cpu-int8" and not has_int8_dot_product()  # see docs/explanations/int8.md
    assert sum(one != other for one, other in zip(with_all, without, strict=True)) <= (5 if saturates else 0)


def test_a_step_may_be_taken_again(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = network.run("cpu-fp32")
    monkeypatch.setattr(HostDecoder, "step", twice(HostDecoder.step))

    assert network.run_anew("cpu-fp32") == expected
