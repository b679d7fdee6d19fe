"""The same weights as a CTranslate2 model, through CTranslate2's own specification API."""

from pathlib import Path

import numpy as np
from ctranslate2.specs.attention_spec import MultiHeadAttentionSpec
from ctranslate2.specs.common_spec import Activation, LayerNormSpec, LinearSpec
from ctranslate2.specs.transformer_spec import FeedForwardSpec, TransformerSpec
from torch import nn

from export.drafts import drafted
from model.attention import MultiHeadAttention
from model.transformer import FeedForward, Layer, Transformer
from server.bundle.shortlist import Shortlist

_ACTIVATIONS = {"relu": Activation.RELU, "silu": Activation.SWISH}
_VOCABULARY_MAP_FILE = "vmap.txt"  # what CTranslate2 calls `--vocab_mapping` in a model's directory


def token_name(token: int) -> str:
    """Returns how the CTranslate2 model calls an id: its API takes and gives strings."""
    return f"t{token}"


def convert(model: Transformer, directory: Path, quantization: str, shortlist: Shortlist) -> None:
    """Writes a CTranslate2 model.

    Args:
        model: post- or pre-norm, ReLU or swish, sinusoidal or learned positions, with an output bias or none.
        directory: to make; must not exist.
        quantization: "float32" or "int8", as CTranslate2 stores the weights.
        shortlist: that `use_vmap` restricts the output to.
    """
    config = model.config
    layers = (config.encoder_layers, config.decoder_layers)
    activation = _ACTIVATIONS[config.activation]
    spec = TransformerSpec.from_config(layers, config.num_heads, pre_norm=config.norm == "pre", activation=activation)
    encoder, decoder = spec.encoder, spec.decoder
    embedding = model.embedding.tokens.weight.detach().numpy()
    for stack, embeddings in ((encoder, encoder.embeddings[0]), (decoder, decoder.embeddings)):
        embeddings.weight = embedding
        stack.position_encodings.encodings = model.embedding.positions.detach().numpy()
    decoder.projection.weight = embedding
    if model.output_bias is not None:
        decoder.projection.bias = model.output_bias.detach().numpy()
    for layer_spec, layer in zip([*encoder.layer, *decoder.layer], [*model.encoder, *model.decoder], strict=True):
        _set_layer(layer_spec, layer)
    if config.norm == "pre":
        _set_norm(encoder.layer_norm, model.encoder_norm)
        _set_norm(decoder.layer_norm, model.decoder_norm)
    names = [token_name(token) for token in range(config.vocab_size)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.layer_norm_epsilon = model.encoder[0].self_norm.eps
    spec.config.bos_token = spec.config.decoder_start_token = names[config.bos_id]
    spec.config.eos_token, spec.config.unk_token = names[config.eos_id], names[config.unk_id]
    spec.validate()
    spec.optimize(quantization=quantization)
    with drafted(directory) as draft:
        spec.save(str(draft))
        (draft / _VOCABULARY_MAP_FILE).write_text(_vocabulary_map(shortlist), encoding="utf-8")


def _vocabulary_map(shortlist: Shortlist) -> str:
    """Returns lines of a source token, a tab and its candidates; the candidates of the empty token are common."""
    tokens = {"": shortlist.common} | {token_name(token): row for token, row in enumerate(shortlist.by_token)}
    lines = (f"{name}\t{' '.join(map(token_name, np.unique(row)))}\n" for name, row in tokens.items())
    return "".join(lines)


def _set_layer(spec: object, layer: Layer) -> None:
    _set_attention(spec.self_attention, layer.self_attention, layer.self_norm)  # type: ignore[attr-defined]
    if hasattr(spec, "attention"):
        width = layer.cross_attention.output.in_features
        _set_attention(spec.attention, layer.cross_attention, layer.cross_norm, query_rows=width)
    _set_feed_forward(spec.ffn, layer.feed_forward, layer.feed_forward_norm)  # type: ignore[attr-defined]


def _set_attention(
    spec: MultiHeadAttentionSpec, attention: MultiHeadAttention, norm: nn.Module, query_rows: int | None = None
) -> None:
    """Sets queries, keys and values as one linear map, or for cross-attention the first `query_rows` apart."""
    weight, bias = attention.qkv.weight.detach().numpy(), attention.qkv.bias.detach().numpy()
    parts = [slice(None)] if query_rows is None else [slice(0, query_rows), slice(query_rows, None)]
    for linear, part in zip(spec.linear, parts, strict=False):
        linear.weight, linear.bias = weight[part].copy(), bias[part].copy()
    _set_linear(spec.linear[-1], attention.output)
    _set_norm(spec.layer_norm, norm)


def _set_feed_forward(spec: FeedForwardSpec, feed_forward: FeedForward, norm: nn.Module) -> None:
    _set_linear(spec.linear_0, feed_forward.hidden)
    _set_linear(spec.linear_1, feed_forward.output)
    _set_norm(spec.layer_norm, norm)


def _set_linear(spec: LinearSpec, linear: nn.Linear) -> None:
    spec.weight, spec.bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()


def _set_norm(spec: LayerNormSpec, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = norm.weight.detach().numpy(), norm.bias.detach().numpy()
