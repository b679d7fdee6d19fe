import math
from collections.abc import Callable

import pytest
import torch

from model.transformer import sinusoids
from tests.model.test_transformer import SOURCE, TARGET, build, close


@torch.inference_mode()
def test_the_source_may_have_a_vocabulary_of_its_own() -> None:
    model = build(source_vocab_size=50)
    before, source = model(SOURCE, TARGET), SOURCE.clone()

    model.embedding.tokens.weight[5] += 1.0  # a source token, and no target token
    assert torch.equal(model(SOURCE, TARGET)[..., 6:], before[..., 6:])
    source[0, 0] = 49
    assert not torch.allclose(model(source, TARGET), before, atol=1e-4)


@torch.inference_mode()
def test_the_output_may_have_a_projection_and_a_bias_of_its_own() -> None:
    model = build(tied_output=False, output_bias=True)
    assert model.output_bias is not None
    torch.nn.init.normal_(model.output_bias)
    model.output_bias[7] = -math.inf

    states, logits = model.states(SOURCE, TARGET), model(SOURCE, TARGET)

    close(logits, states @ model.output.weight.T + model.output_bias)
    assert (logits[..., 7] == -math.inf).all()
    assert model.output_weight is model.output.weight
    assert {"output.weight", "output_bias"} <= model.state_dict().keys()


@torch.inference_mode()
def test_embeddings_may_be_neither_scaled_nor_without_a_norm() -> None:
    model = build(scale_embedding=False, embedding_norm=True, layer_norm_eps=0.5)
    x = model.embedding.tokens.weight[SOURCE[:1]] + sinusoids(5, 16)
    expected = torch.nn.functional.layer_norm(x, (16,), eps=0.5)

    embedded = model.embedding(SOURCE[:1], model.source_positions, model.encoder_embedding_norm)

    close(embedded, expected)
    names = {name.partition(".")[0] for name in model.state_dict() if "embedding_norm" in name}
    assert names == {"encoder_embedding_norm", "decoder_embedding_norm"}


@torch.inference_mode()
def test_each_side_may_have_a_table_of_positions() -> None:
    plain, model = build(), build(positions="table")
    assert model.state_dict()["encoder_positions"].shape == model.state_dict()["decoder_positions"].shape == (12, 16)

    model.load_state_dict(
        plain.state_dict() | {f"{side}_positions": sinusoids(12, 16) for side in ("encoder", "decoder")}
    )
    assert torch.equal(model(SOURCE, TARGET), plain(SOURCE, TARGET))

    model.decoder_positions += 1.0
    assert torch.equal(model.encode(SOURCE)[0], plain.encode(SOURCE)[0])
    assert not torch.allclose(model(SOURCE, TARGET), plain(SOURCE, TARGET), atol=1e-4)


def test_each_side_may_have_sizes_and_norms_of_its_own() -> None:
    model = build("pre", encoder_norm="post", encoder_num_heads=1, encoder_ffn_dim=32, head_width=24)

    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}

    assert shapes["encoder.0.self_attention.qkv.weight"] == (3 * 24, 16)
    assert shapes["decoder.0.self_attention.qkv.weight"] == shapes["decoder.0.cross_attention.qkv.weight"] == (144, 16)
    assert shapes["decoder.0.cross_attention.output.weight"] == (16, 48)
    assert shapes["encoder.0.feed_forward.hidden.weight"] == (32, 16)
    assert "decoder_norm.weight" in shapes
    assert "encoder_norm.weight" not in shapes
    assert (model.encoder[0].is_pre_norm, model.decoder[0].is_pre_norm) == (False, True)
    assert "encoder_norm.weight" in build("post", final_norm=True).state_dict()


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("relu", lambda x: max(x, 0.0)),
        ("silu", lambda x: x / (1 + math.exp(-x))),
        ("gelu", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
        ("quick_gelu", lambda x: x / (1 + math.exp(-1.702 * x))),
    ],
)
def test_activations_are_those_that_their_names_say(activation: str, expected: Callable[[float], float]) -> None:
    feed_forward = build(activation=activation).encoder[0].feed_forward
    for linear in (feed_forward.hidden, feed_forward.output):
        torch.nn.init.eye_(linear.weight)
        torch.nn.init.zeros_(linear.bias)

    for x in (-3.0, -0.5, 0.0, 0.1, 4.0):
        assert float(feed_forward(torch.full((1, 1, 16), x))[0, 0, 0]) == pytest.approx(expected(x), abs=1e-6)


def test_all_of_a_network_that_departs_from_the_paper_learns() -> None:
    model = build(
        source_vocab_size=40,
        tied_output=False,
        output_bias=True,
        embedding_norm=True,
        decoder_mixer="ssru",
        activation="silu",
    ).train()

    model(SOURCE, TARGET).square().sum().backward()

    assert [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()] == []
