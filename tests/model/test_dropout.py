import pytest
import torch

from model.dropout import Dropout, replace_words


@pytest.mark.parametrize("probability", [0.05, 0.1, 0.5])
def test_its_share_is_zeroed_and_the_mean_is_kept(probability: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(301, 333)

    dropped = Dropout(probability).train()(x)

    assert float((dropped == 0).float().mean()) == pytest.approx(probability, abs=0.006)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.01)
    assert len(dropped.unique()) == 2


@pytest.mark.parametrize(("probability", "rounded"), [(0.0015, 1 / 256), (0.999, 255 / 256)])
def test_neither_none_nor_all_are_dropped(probability: float, rounded: float) -> None:
    torch.manual_seed(0)

    dropped = Dropout(probability).train()(torch.ones(1000, 1000))

    assert float((dropped == 0).float().mean()) == pytest.approx(rounded, abs=0.0005)
    assert float(dropped.max()) == pytest.approx(1 / (1 - rounded))


def test_every_place_is_dropped_as_often() -> None:
    torch.manual_seed(0)
    layer = Dropout(0.5).train()

    shares = torch.stack([layer(torch.ones(64)) == 0 for _ in range(2000)]).float().mean(0)

    assert float(shares.min()) > 0.44
    assert float(shares.max()) < 0.56


def test_gradients_pass_where_the_input_did() -> None:
    x = torch.ones(1000, requires_grad=True)

    dropped = Dropout(0.3).train()(x)
    dropped.sum().backward()

    assert x.grad is not None
    assert torch.equal(x.grad, dropped.detach())


def test_the_seed_decides() -> None:
    layer, masks = Dropout(0.5).train(), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(layer(torch.ones(100)))

    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_nothing_is_dropped_in_evaluation_or_without_a_probability() -> None:
    x = torch.randn(5, 5)

    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


def test_word_dropout_replaces_its_share_and_leaves_special_tokens_alone() -> None:
    torch.manual_seed(0)
    ids = torch.randint(4, 1000, (50, 400))
    ids[:, 0] = 2
    ids[:, 300:] = 0
    ids[:, 299] = 3

    replaced = replace_words(ids, 0.3, last_special_id=3, vocab_size=1000)

    special = ids <= 3
    assert torch.equal(replaced[special], ids[special])
    assert replaced[~special].min() >= 4
    assert replaced.max() < 1000
    assert float((replaced != ids)[~special].float().mean()) == pytest.approx(0.3, abs=0.02)


def test_no_word_dropout_changes_nothing_and_draws_nothing() -> None:
    state = torch.get_rng_state()
    ids = torch.tensor([[2, 5, 6]])

    assert replace_words(ids, 0.0, 3, 10) is ids
    assert torch.equal(torch.get_rng_state(), state)
