import math
from typing import Any

import pytest
import torch
from torch import Tensor

from model.config import TransformerConfig
from model.transformer import Transformer, sinusoids

KINDS = [(norm, positions) for norm in ("post", "pre") for positions in ("sinusoidal", "learned")]
SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]])
TARGET = torch.tensor([[2, 11, 12, 13], [2, 14, 15, 16]])
ATOL = 1e-5  # float32, other shapes of the same sums
RECURRENCES = ["ssru", "retention"]


def build(norm: str = "post", positions: str = "sinusoidal", dropout: float = 0.1, **changes: Any) -> Transformer:
    torch.manual_seed(0)
    config = TransformerConfig(
        vocab_size=40,
        d_model=16,
        num_heads=2,
        encoder_layers=2,
        decoder_layers=3,
        ffn_dim=24,
        max_positions=12,
        dropout=dropout,
        norm=norm,  # type: ignore[arg-type]
        positions=positions,  # type: ignore[arg-type]
        **changes,
    )
    return Transformer(config).eval()


@pytest.fixture(params=[*KINDS, *RECURRENCES], ids=["-".join(kind) for kind in KINDS] + RECURRENCES)
def model(request: pytest.FixtureRequest) -> Transformer:
    return build(decoder_mixer=request.param) if request.param in RECURRENCES else build(*request.param)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


@torch.inference_mode()
def test_later_target_tokens_do_not_change_earlier_logits(model: Transformer) -> None:
    for position in range(1, TARGET.shape[1]):
        changed = TARGET.clone()
        changed[:, position:] = 30

        before, after = model(SOURCE, TARGET), model(SOURCE, changed)

        assert torch.equal(after[:, :position], before[:, :position])
        assert not torch.allclose(after[:, position:], before[:, position:])


@torch.inference_mode()
def test_every_earlier_target_token_and_source_token_matters(model: Transformer) -> None:
    before = model(SOURCE[:1], TARGET[:1])

    for position in range(TARGET.shape[1]):
        changed = TARGET[:1].clone()
        changed[0, position] = 30
        assert not torch.allclose(model(SOURCE[:1], changed)[:, -1], before[:, -1], atol=1e-4)
    for position in range(SOURCE.shape[1]):
        changed = SOURCE[:1].clone()
        changed[0, position] = 30
        assert not torch.allclose(model(changed, TARGET[:1])[:, 0], before[:, 0], atol=1e-4)


@torch.inference_mode()
def test_padding_has_no_influence(model: Transformer) -> None:
    together = model(SOURCE, TARGET)

    close(together[1:], model(SOURCE[1:, :3], TARGET[1:]))
    close(together[:, :2], model(SOURCE, TARGET[:, :2]))


@torch.inference_mode()
def test_order_of_the_source_matters(model: Transformer) -> None:
    swapped = SOURCE[:1, [1, 0, 2, 3, 4]]

    assert not torch.allclose(model(swapped, TARGET[:1]), model(SOURCE[:1], TARGET[:1]), atol=1e-4)


@torch.inference_mode()
def test_encode_and_decode_make_up_the_forward_pass(model: Transformer) -> None:
    memory, visible = model.encode(SOURCE)
    logits, weights = model.decode(TARGET, memory, visible)

    assert logits.shape == (2, 4, 40)
    assert memory.shape == (2, 5, 16)
    assert visible[:, 0, 0].tolist() == [[True] * 5, [True, True, True, False, False]]
    assert weights == []
    assert torch.equal(logits, model(SOURCE, TARGET))


@torch.inference_mode()
def test_attention_weights_of_each_layer_sum_up_to_one_over_the_source(model: Transformer) -> None:
    memory, visible = model.encode(SOURCE)

    logits, weights = model.decode(TARGET, memory, visible, need_weights=True)

    assert len(weights) == 3
    for layer in weights:
        assert layer.shape == (2, 2, 4, 5)
        close(layer.sum(-1), torch.ones(2, 2, 4))
        assert not layer[1, :, :, 3:].any()
    close(logits, model(SOURCE, TARGET))


def test_one_matrix_embeds_both_sides_and_projects_the_output(model: Transformer) -> None:
    matrices = [name for name, parameter in model.named_parameters() if 40 in parameter.shape]

    assert matrices == ["embedding.tokens.weight"]
    with torch.inference_mode():
        memory, visible = model.encode(SOURCE)
        before = model.decode(TARGET, memory, visible)[0]
        model.embedding.tokens.weight[20] += 1.0
        after = model.decode(TARGET, memory, visible)[0]
        assert not torch.equal(model.encode(torch.tensor([[20, 3]]))[0], model.encode(torch.tensor([[21, 3]]))[0])
    changed = (after - before).abs().amax(dim=(0, 1)) > 0
    assert changed.nonzero().flatten().tolist() == [20]


def test_embeddings_are_scaled_by_the_root_of_the_width() -> None:
    model = build()

    embedded = model.embedding(torch.tensor([[7, 7]]))

    expected = model.embedding.tokens.weight[7] * 4.0 + sinusoids(2, 16)
    close(embedded[0], expected)


def test_sinusoids_are_those_of_the_paper() -> None:
    table = sinusoids(512, 64)

    assert table.dtype == torch.float32
    for position, i in [(0, 0), (1, 0), (1, 5), (17, 3), (511, 31), (300, 16)]:
        angle = position / 10000 ** (2 * i / 64)
        assert float(table[position, 2 * i]) == pytest.approx(math.sin(angle), abs=1e-6)
        assert float(table[position, 2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-6)


def test_only_learned_positions_are_weights() -> None:
    assert "embedding.positions" in build(positions="learned").state_dict()
    assert "embedding.positions" not in build(positions="sinusoidal").state_dict()


def test_learned_positions_get_gradients() -> None:
    model = build(positions="learned")

    model(SOURCE, TARGET).sum().backward()

    gradient = model.embedding.positions.grad
    assert gradient is not None
    assert gradient[:4].abs().amin(dim=1).gt(0).all()
    assert not gradient[5:].any()  # no sentence is that long


def test_post_norm_ends_each_stack_with_normalised_rows() -> None:
    memory, _ = build("post").encode(SOURCE)

    close(memory.mean(-1), torch.zeros(2, 5))
    torch.testing.assert_close(memory.var(-1, unbiased=False), torch.ones(2, 5), atol=1e-3, rtol=0)


def test_pre_norm_keeps_the_residual_stream_and_normalises_at_the_end() -> None:
    model = build("pre")
    layer = model.encoder[0]
    for linear in (layer.self_attention.output, layer.feed_forward.output):
        torch.nn.init.zeros_(linear.weight)
        torch.nn.init.zeros_(linear.bias)
    x = torch.randn(2, 5, 16)

    assert torch.equal(layer(x, torch.ones(1, 1, 1, 5, dtype=torch.bool)), x)
    memory, _ = model.encode(SOURCE)
    close(memory.mean(-1), torch.zeros(2, 5))


def test_post_norm_normalises_the_residual_sum() -> None:
    model = build("post")
    layer = model.encoder[0]
    for linear in (layer.self_attention.output, layer.feed_forward.output):
        torch.nn.init.zeros_(linear.weight)
        torch.nn.init.zeros_(linear.bias)
    x = torch.randn(2, 5, 16)

    expected = torch.nn.functional.layer_norm(torch.nn.functional.layer_norm(x, (16,)), (16,))

    close(layer(x, torch.ones(1, 1, 1, 5, dtype=torch.bool)), expected)


def test_one_layer_is_the_encoder_layer_of_torch() -> None:
    for norm in ("post", "pre"):
        layer = build(norm).encoder[0]
        theirs = torch.nn.TransformerEncoderLayer(16, 2, 24, batch_first=True, norm_first=norm == "pre").eval()
        theirs.load_state_dict(
            {
                "self_attn.in_proj_weight": layer.self_attention.qkv.weight,
                "self_attn.in_proj_bias": layer.self_attention.qkv.bias,
                "self_attn.out_proj.weight": layer.self_attention.output.weight,
                "self_attn.out_proj.bias": layer.self_attention.output.bias,
                "linear1.weight": layer.feed_forward.hidden.weight,
                "linear1.bias": layer.feed_forward.hidden.bias,
                "linear2.weight": layer.feed_forward.output.weight,
                "linear2.bias": layer.feed_forward.output.bias,
                "norm1.weight": layer.self_norm.weight,
                "norm1.bias": layer.self_norm.bias,
                "norm2.weight": layer.feed_forward_norm.weight,
                "norm2.bias": layer.feed_forward_norm.bias,
            }
        )
        x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(2))

        close(layer(x, torch.ones(1, 1, 1, 5, dtype=torch.bool)), theirs(x))


def test_dropout_acts_in_training_alone() -> None:
    model = build(dropout=0.3)

    still = [model(SOURCE, TARGET) for _ in range(2)]
    noisy = [model.train()(SOURCE, TARGET) for _ in range(2)]

    assert torch.equal(*still)
    assert not torch.equal(*noisy)


def test_padding_is_embedded_as_zero_and_never_learned() -> None:
    model = build()

    model(SOURCE, TARGET).sum().backward()

    assert not model.embedding.tokens.weight[0].any()
