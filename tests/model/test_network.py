from typing import Any

import pytest
import torch

from model.config import TransformerConfig
from model.network import Network, TokenEmbedding


def build(**changes: Any) -> Network:
    torch.manual_seed(0)
    network = Network(TransformerConfig(vocab_size=50, d_model=16, num_heads=1, **changes)).eval()
    network.initialise()
    return network


def test_the_output_projection_is_the_embedding_unless_the_config_says_no() -> None:
    tied, untied = build(), build(tied_output=False)

    assert tied.output_weight is tied.embedding.tokens.weight
    assert untied.output_weight.shape == (50, 16)
    assert not torch.equal(untied.output_weight, untied.embedding.tokens.weight)


def test_the_source_has_an_embedding_of_its_own_if_it_has_a_vocabulary_of_its_own() -> None:
    joint = build()

    assert joint.source_tokens is joint.embedding.tokens.weight
    assert build(source_vocab_size=30).source_tokens.shape == (30, 16)


@torch.inference_mode()
def test_logits_are_products_with_the_projection_plus_the_bias() -> None:
    network, x = build(output_bias=True), torch.randn(2, 3, 16)
    assert network.output_bias is not None
    network.output_bias.normal_()

    torch.testing.assert_close(network.logits(x), x @ network.output_weight.t() + network.output_bias)


@pytest.mark.parametrize(("scale_embedding", "scale"), [(True, 4.0), (False, 1.0)])
@torch.inference_mode()
def test_embeddings_are_scaled_unless_the_config_says_no_and_padding_is_zero(
    scale_embedding: bool, scale: float
) -> None:
    embedding = build(scale_embedding=scale_embedding).embedding
    assert isinstance(embedding, TokenEmbedding)

    embedded = embedding(torch.tensor([[7, 0]]))

    assert torch.equal(embedded[0, 0], embedding.tokens.weight[7] * scale)
    assert not embedded[0, 1].any()
