"""What is counted must be what the model does; speeds are not tested."""

import numpy as np
import pytest
from torch import nn

from model.config import TransformerConfig
from model.transformer import Transformer
from tests.bench.limits import linear_map, work_of

CONFIG = TransformerConfig(vocab_size=50, d_model=16, num_heads=2, encoder_layers=2, decoder_layers=3, ffn_dim=24)


def test_every_linear_weight_is_counted_once_as_a_multiplication_and_an_addition() -> None:
    linear = sum(module.weight.numel() for module in Transformer(CONFIG).modules() if isinstance(module, nn.Linear))
    projection = CONFIG.vocab_size * CONFIG.d_model  # by the embedding's weights

    work = work_of(CONFIG, [(5, 7)])

    assert sum(work.encoder.values()) + sum(work.decoder.values()) == 2 * (linear + projection)


def test_a_text_takes_its_source_tokens_and_a_step_for_each_target_token_and_eos() -> None:
    work = work_of(CONFIG, [(5, 7), (3, 0)])

    assert (work.source_tokens, work.steps) == (8, 9)
    assert sum(work.linear.values()) == 8 * sum(work.encoder.values()) + 9 * sum(work.decoder.values())


def test_attention_sees_all_source_positions_and_the_target_positions_so_far() -> None:
    work = work_of(CONFIG, [(5, 2)])

    encoder, itself, source = 2 * 5 * 5, 3 * (1 + 2 + 3), 3 * 3 * 5  # layers x pairs of positions
    assert work.attention == (encoder + itself + source) * 2 * 2 * CONFIG.d_model  # scores and sums


def test_a_step_reads_each_weight_once() -> None:
    work = work_of(CONFIG, [(5, 7)])

    weights = sum(work.decoder.values()) // 2
    outputs = 3 * (3 * 16 + 16 + 16 + 16 + 24 + 16) + 50
    assert work.step_bytes("int8") == weights + 8 * outputs
    assert work.step_bytes("fp32") == 4 * weights + 4 * outputs


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_what_is_timed_is_a_linear_map(precision: str) -> None:
    y = linear_map(precision, (16, 24), num_rows=5)()

    assert y.shape == (5, 24)
    assert y.dtype == np.float32
    assert np.isfinite(y).all()
