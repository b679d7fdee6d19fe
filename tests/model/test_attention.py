import pytest
import torch
from torch import Tensor
from torch.nn import functional

from model.attention import MultiHeadAttention, causal_mask

B, T, K, M, H = 3, 5, 7, 32, 4
ATOL = 1e-5  # float32, other order of sums


@pytest.fixture
def attention() -> MultiHeadAttention:
    torch.manual_seed(0)
    module = MultiHeadAttention(M, H, dropout=0.1)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module.eval()


def random_tensors(*lengths: int) -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randn(B, length, M) for length in lengths]


def by_torch(module: MultiHeadAttention, queries: Tensor, memory: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    context, weights = functional.multi_head_attention_forward(
        queries.transpose(0, 1),
        memory.transpose(0, 1),
        memory.transpose(0, 1),
        M,
        H,
        module.qkv.weight,
        module.qkv.bias,
        None,
        None,
        False,
        0.0,
        module.output.weight,
        module.output.bias,
        training=False,
        attn_mask=~visible.expand(B, H, queries.shape[1], memory.shape[1]).flatten(0, 1),
        average_attn_weights=False,
    )
    assert weights is not None
    return context.transpose(0, 1), weights


def ragged(length: int) -> Tensor:
    lengths = torch.tensor([length, length - 2, 1])
    return (torch.arange(length) < lengths[:, None])[:, None, None, :]


@pytest.mark.parametrize("need_weights", [False, True])
def test_self_attention_is_that_of_torch(attention: MultiHeadAttention, need_weights: bool) -> None:
    (x,) = random_tensors(T)
    visible = causal_mask(T, x.device)

    context, weights = attention(x, None, visible, need_weights)

    expected, expected_weights = by_torch(attention, x, x, visible)
    torch.testing.assert_close(context, expected, atol=ATOL, rtol=0)
    if need_weights:
        torch.testing.assert_close(weights, expected_weights, atol=ATOL, rtol=0)
    else:
        assert weights is None


@pytest.mark.parametrize("need_weights", [False, True])
def test_cross_attention_is_that_of_torch(attention: MultiHeadAttention, need_weights: bool) -> None:
    x, memory = random_tensors(T, K)
    visible = ragged(K)

    context, weights = attention(x, memory, visible, need_weights)

    expected, expected_weights = by_torch(attention, x, memory, visible)
    torch.testing.assert_close(context, expected, atol=ATOL, rtol=0)
    if weights is not None:
        torch.testing.assert_close(weights, expected_weights, atol=ATOL, rtol=0)


def test_self_attention_is_cross_attention_over_the_queries(attention: MultiHeadAttention) -> None:
    (x,) = random_tensors(T)
    visible = ragged(T)

    torch.testing.assert_close(attention(x, None, visible)[0], attention(x, x, visible)[0], atol=ATOL, rtol=0)


def test_masked_positions_have_no_influence(attention: MultiHeadAttention) -> None:
    x, memory = random_tensors(T, K)
    visible = ragged(K)
    changed = torch.where(visible[:, 0, 0, :, None], memory, torch.full_like(memory, 1e3))

    for need_weights in (False, True):
        expected, actual = (attention(x, m, visible, need_weights)[0] for m in (memory, changed))
        assert torch.equal(actual, expected)


def test_weights_sum_up_to_one_and_are_zero_where_nothing_is_visible(attention: MultiHeadAttention) -> None:
    x, memory = random_tensors(T, K)
    visible = ragged(K)

    weights = attention(x, memory, visible, need_weights=True)[1]

    assert weights.shape == (B, H, T, K)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T), atol=ATOL, rtol=0)
    assert not weights.masked_select(~visible.expand_as(weights)).any()


@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_acts_in_training_alone(attention: MultiHeadAttention, need_weights: bool) -> None:
    (x,) = random_tensors(T)
    visible = causal_mask(T, x.device)

    still = [attention(x, None, visible, need_weights)[0] for _ in range(2)]
    attention.train()
    noisy = [attention(x, None, visible, need_weights)[0] for _ in range(2)]

    assert torch.equal(*still)
    assert not torch.equal(*noisy)


def test_heads_may_be_wider_than_their_share_of_the_model() -> None:
    torch.manual_seed(0)
    wide = MultiHeadAttention(M, H, dropout=0.0, head_dim=M).eval()
    x, memory = random_tensors(T, K)
    visible = ragged(K)

    context, weights = wide(x, memory, visible, need_weights=True)

    q, k, v = (
        functional.linear(side, w, b).unflatten(-1, (H, M)).transpose(1, 2)
        for side, w, b in zip((x, memory, memory), wide.qkv.weight.chunk(3), wide.qkv.bias.chunk(3), strict=True)
    )
    expected = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible).transpose(1, 2).flatten(2)
    torch.testing.assert_close(context, wide.output(expected), atol=ATOL, rtol=0)
    torch.testing.assert_close(wide(x, memory, visible)[0], context, atol=ATOL, rtol=0)
    assert weights.shape == (B, H, T, K)


def test_the_causal_mask_shows_each_position_itself_and_what_is_before() -> None:
    mask = causal_mask(3, torch.device("cpu"))

    assert mask.tolist() == [[[[True, False, False], [True, True, False], [True, True, True]]]]


def test_a_window_shows_each_position_the_last_ones_up_to_itself() -> None:
    mask = causal_mask(4, torch.device("cpu"), window=2)[0, 0].int()

    assert mask.tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


@pytest.mark.parametrize("window", [0, 3, 4])
def test_a_window_of_all_positions_is_none(window: int) -> None:
    device = torch.device("cpu")

    assert torch.equal(causal_mask(3, device, window), causal_mask(3, device))


def test_a_network_that_learns_attends_as_one_that_translates(attention: MultiHeadAttention) -> None:
    queries, memory = random_tensors(T, K)
    attention.dropout = 0.0
    expected, _ = attention(queries, memory, ragged(K))

    found, weights = attention.train()(queries, memory, ragged(K))

    assert weights is None
    torch.testing.assert_close(found, expected, atol=ATOL, rtol=0)
