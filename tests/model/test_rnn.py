from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.config import AttentionScore, TransformerConfig
from model.data import Batch
from model.families import FAMILIES
from model.recipe import TrainingConfig
from model.rnn import Attention, BidirectionalLSTM, RecurrentNetwork, _reversal
from tests.model.test_families import learned, reversed_sentences

SCORES: list[AttentionScore] = ["none", "dot", "general", "additive"]
SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]])
TARGET = torch.tensor([[2, 11, 12, 13], [2, 14, 15, 16]])
VISIBLE = torch.tensor([[[True, True, True, True]], [[True, True, False, False]]])


def build(score: AttentionScore = "general", **changes: Any) -> RecurrentNetwork:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": 40,
        "d_model": 16,
        "head_width": 24,
        "encoder_layers": 2,
        "decoder_layers": 3,
    }
    config = TransformerConfig(
        family="recurrent", attention_score=score, num_heads=1, output_bias=True, **{**sizes, **changes}
    )
    return RecurrentNetwork(config).eval()


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)  # float32, other shapes of the same sums


@pytest.mark.parametrize("score", SCORES)
@torch.inference_mode()
def test_padding_and_other_rows_change_nothing(score: AttentionScore) -> None:
    model = build(score)

    close(model(SOURCE, TARGET)[1], model(SOURCE[1:, :3], TARGET[1:])[0])


@pytest.mark.parametrize("score", SCORES)
@torch.inference_mode()
def test_every_source_token_and_every_earlier_target_token_matters_and_no_later_one(score: AttentionScore) -> None:
    model = build(score)
    before = model(SOURCE[:1], TARGET[:1])

    for position in range(SOURCE.shape[1]):
        changed = SOURCE[:1].clone()
        changed[0, position] = 30
        assert ((model(changed, TARGET[:1]) - before).abs().amax(dim=-1) > 1e-6).all()
    for position in range(1, TARGET.shape[1]):
        changed = TARGET[:1].clone()
        changed[0, position] = 30
        difference = (model(SOURCE[:1], changed) - before).abs().amax(dim=-1)[0]
        assert difference[:position].eq(0).all()
        assert difference[position:].gt(1e-6).all()


@torch.inference_mode()
def test_the_bidirectional_lstm_is_that_of_torch_over_packed_rows() -> None:
    torch.manual_seed(0)
    x, lengths = torch.randn(3, 6, 4), torch.tensor([6, 2, 4])
    layer = BidirectionalLSTM(4, 10)
    expected = nn.LSTM(4, 5, bidirectional=True, batch_first=True)
    for name, weight in layer.forwards.named_parameters():
        expected.get_parameter(name).copy_(weight)
        expected.get_parameter(f"{name}_reverse").copy_(layer.backwards.get_parameter(name))

    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    states, _ = nn.utils.rnn.pad_packed_sequence(expected(packed)[0], batch_first=True)

    visible = torch.arange(6) < lengths[:, None]
    found = layer(x, _reversal(visible))
    close(found[visible], states[visible])


@pytest.mark.parametrize("score", SCORES[1:])
@torch.inference_mode()
def test_the_context_is_the_mean_of_the_visible_states_weighted_by_the_papers_scores(score: AttentionScore) -> None:
    torch.manual_seed(0)
    attention, queries, memory = Attention(score, 8), torch.randn(2, 3, 8), torch.randn(2, 4, 8)
    energies: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "dot": lambda h, s: h @ s,
        "general": lambda h, s: h @ (attention.get_parameter("key.weight") @ s),
        "additive": lambda h, s: attention.energy @ torch.tanh(attention.query(h) + attention.key(s)),
    }

    found = attention(queries, memory, VISIBLE)

    for row, length in enumerate((4, 2)):
        for t in range(3):
            scores = torch.stack([energies[score](queries[row, t], memory[row, s]) for s in range(length)])
            close(found[row, t], scores.softmax(dim=0) @ memory[row, :length])


@torch.inference_mode()
def test_the_decoder_begins_with_the_last_states_of_both_directions() -> None:
    model = build()
    memory, visible = model.encode(SOURCE)

    starts = model.decoder.starts(memory, visible)

    for row, last in enumerate((4, 2)):
        ends = torch.cat([memory[row, last, :12], memory[row, 0, 12:]])
        close(starts[row].flatten(), model.decoder.bridge(ends))


@torch.inference_mode()
def test_a_gate_that_forgets_begins_open() -> None:
    lstm = build().decoder.layers[0]

    assert lstm.get_parameter("bias_ih_l0")[24:48].eq(1).all()


@pytest.mark.parametrize("score", SCORES)
def test_every_weight_learns(score: AttentionScore) -> None:
    model = build(score).train()
    batch = Batch(SOURCE, TARGET, torch.tensor([[11, 12, 13, 3], [14, 15, 16, 3]]))

    FAMILIES["recurrent"].loss(model, batch, TrainingConfig()).backward()

    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name


@pytest.mark.parametrize("score", SCORES)
def test_every_score_learns_what_it_then_translates_alone_and_in_a_batch(score: AttentionScore) -> None:
    batch = reversed_sentences()
    sizes = {"vocab_size": 20, "d_model": 32, "head_width": 32, "encoder_layers": 1, "decoder_layers": 1}
    config = build(score, **sizes, dropout=0.0).config

    model = learned(FAMILIES["recurrent"], config, batch, TrainingConfig(label_smoothing=0.0))

    sources = [[*row[row > 3].tolist(), 3] for row in batch.source]
    expected = [source[-2::-1] for source in sources]
    assert FAMILIES["recurrent"].translate(model, sources, 1) == expected
    together = FAMILIES["recurrent"].translate(model, sources, 4)
    assert together == [FAMILIES["recurrent"].translate(model, [source], 4)[0] for source in sources]
