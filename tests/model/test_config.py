from typing import Any

import pytest

from model.config import StackConfig, TransformerConfig


def test_every_fault_of_a_model_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="vocab_size") as caught:
        TransformerConfig(vocab_size=0, encoder_layers=-1, dropout=1.0, norm="none", positions="none")  # type: ignore[arg-type]

    faults = str(caught.value).split("; ")
    assert [fault.split()[0] for fault in faults] == ["vocab_size", "encoder_layers", "dropout", "norm", "positions"]


@pytest.mark.parametrize(("d_model", "num_heads"), [(100, 3), (36, 4), (16, 4)])
def test_heads_that_the_graphs_cannot_hold_are_refused(d_model: int, num_heads: int) -> None:
    with pytest.raises(ValueError, match=f"must be a multiple of 8, not {d_model} / {num_heads}"):
        TransformerConfig(vocab_size=10, d_model=d_model, num_heads=num_heads)


def config(**changes: Any) -> TransformerConfig:
    return TransformerConfig(vocab_size=100, d_model=64, num_heads=4, ffn_dim=32, **changes)


def test_the_encoder_is_shaped_like_the_decoder_unless_it_is_told_otherwise() -> None:
    assert config().encoder == config().decoder

    other = config(encoder_num_heads=8, encoder_ffn_dim=48, encoder_norm="pre")

    assert other.decoder == config().decoder
    assert other.encoder == StackConfig(num_heads=8, head_dim=8, ffn_dim=48, is_pre_norm=True, has_final_norm=True)


def test_final_norms_come_with_pre_norm_unless_they_are_told_otherwise() -> None:
    def ends(**changes: Any) -> tuple[bool, bool]:
        return config(**changes).encoder.has_final_norm, config(**changes).decoder.has_final_norm

    assert ends() == (False, False)
    assert ends(encoder_norm="pre") == (True, False)
    assert ends(final_norm=True) == (True, True)
    assert ends(norm="pre", final_norm=False) == (False, False)


def test_the_width_of_a_head_need_not_be_a_share_of_the_model_width() -> None:
    wide = config(head_width=24, encoder_num_heads=3)

    assert (wide.encoder.head_dim, wide.decoder.head_dim, wide.head_dim) == (24, 24, 24)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"head_width": 12}, "head_width must be a multiple of 8, not 12"),
        ({"head_width": 0}, "head_width must be in 1..1048576, not 0"),
        ({"encoder_num_heads": 3}, "d_model / encoder_num_heads must be a multiple of 8, not 64 / 3"),
        ({"source_vocab_size": 0}, "source_vocab_size must be in 1..1048576, not 0"),
        ({"bos_id": 100}, "bos_id must be in 0..99, below vocab_size, not 100"),
        ({"pad_id": -1}, "pad_id must be in 0..99, below vocab_size, not -1"),
        ({"source_vocab_size": 3}, "eos_id must be in 0..2, below source_vocab_size, not 3"),
        ({"activation": "tanh"}, r"activation must be one of \('relu', 'silu', 'gelu', 'quick_gelu'\), not 'tanh'"),
        ({"encoder_norm": "none"}, r"encoder_norm must be one of \('post', 'pre', None\), not 'none'"),
        ({"family": "rnn"}, r"family must be one of \('transformer', 'one_pass', 'recurrent'\), not 'rnn'"),
        ({"family": "recurrent"}, 'num_heads must be 1 where family is "recurrent", not 4'),
        ({"attention_score": "dot"}, 'attention_score must be "none" where family is "transformer", not "dot"'),
        ({"attention_score": "cosine"}, r"attention_score must be one of .*'additive'\), not 'cosine'"),
        ({"family": "one_pass", "decoder_mixer": "ssru"}, 'must be "attention" where family is "one_pass", not "ssru"'),
        ({"decoder_mixer": "lstm"}, r"decoder_mixer must be one of \('attention', 'ssru', 'retention'\), not 'lstm'"),
        ({"self_window": -1}, "self_window must be in 0..512 with attention, not -1"),
        ({"self_window": 9, "max_positions": 8}, "self_window must be in 0..8 with attention, not 9"),
        ({"self_window": 1, "family": "one_pass"}, "self_window must be in 0..0 with one_pass, not 1"),
        ({"self_window": 1, "decoder_mixer": "ssru"}, "self_window must be in 0..0 with ssru, not 1"),
        ({"layer_norm_eps": 0.0}, "layer_norm_eps must be over 0 and at most 1, not 0.0"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps must be over 0 and at most 1, not nan"),
        ({"encoder_layers": 2000}, "encoder_layers must be in 1..1024, not 2000"),
        ({"max_positions": 10**12}, "max_positions must be in 1..1048576, not 1000000000000"),
    ],
)
def test_what_no_network_can_be_is_refused(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        config(**changes)
