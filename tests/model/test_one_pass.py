from typing import Any

import pytest
import torch

from model import loss
from model.config import TransformerConfig
from model.one_pass import OnePass

SOURCES = torch.tensor([[4, 9, 17, 22, 3], [5, 8, 3, 0, 0]])


def build(**changes: Any) -> OnePass:
    torch.manual_seed(0)
    sizes = {"vocab_size": 40, "d_model": 32, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 2, "ffn_dim": 48}
    model = OnePass(TransformerConfig(family="one_pass", max_positions=12, **{**sizes, **changes})).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.3)
    return model


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.inference_mode()
def test_each_source_token_has_two_positions_whatever_else_the_batch_has(norm: str) -> None:
    model = build(norm=norm, output_bias=True)

    together = model(SOURCES)

    assert together.shape == (2, 10, 40)
    torch.testing.assert_close(together[1, :6], model(SOURCES[1:, :3])[0], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(together[0, 0], together[0, 1])


@torch.inference_mode()
def test_every_position_sees_every_source_token() -> None:
    model = build()
    changed = SOURCES[:1].clone()
    changed[0, 2] = 30

    assert ((model(SOURCES[:1]) - model(changed)).abs().amax(dim=-1) > 1e-4).all()


@torch.inference_mode()
def test_a_source_may_fill_the_table_of_positions() -> None:
    source = torch.full((1, 12), 7)

    assert build()(source).shape == (1, 24, 40)


@pytest.mark.parametrize("chunk_elements", [1, 130, 10**6])
@torch.inference_mode()
def test_best_tokens_are_those_of_all_logits(monkeypatch: pytest.MonkeyPatch, chunk_elements: int) -> None:
    monkeypatch.setattr(loss, "CHUNK_ELEMENTS", chunk_elements)
    model = build(output_bias=True)

    found = model.best_tokens(model.decode(*model.upsample(SOURCES)))

    assert torch.equal(found, model(SOURCES).argmax(dim=-1))


def test_the_encoder_has_the_weights_names_of_a_transformer() -> None:
    names = {name for name in build().state_dict() if not name.startswith(("decoder", "upsampling"))}

    assert {"embedding.tokens.weight", "encoder.0.self_attention.qkv.weight"} <= names
    assert not any("cross" in name for name in build().state_dict())
