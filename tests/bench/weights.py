"""Seeded random weights that end their sentences by themselves, at realistic lengths.

A random network never ends a sentence, and cutting all rows at the same step would hide what finished rows cost. So a
circuit is laid into the weights: the logit of eos rises when the target's position t passes `LENGTH_RATIO` times the
source's length S. It is made of ordinary weights, so every system that loads them behaves alike:

- Two groups of the residual stream's columns are kept free: no layer but the circuit writes to them, and the
  LayerNormalization gains hold them steady. CLOCK are columns whose sinusoids turn once in 250 to 800 positions, from
  which a linear readout tells the position. SIGNAL are columns whose sinusoids hardly move; of all tokens only
  eos has an embedding there, which marks the source's last position and catches the signal at the output.
- First decoder layer: head 0 of the cross-attention looks at the marked position, whose clock says S, and subtracts
  LENGTH_RATIO * S from the clock of the target, which says t.
- Two hidden units of the layer's feed-forward network turn the difference into a ramp on SIGNAL, which all further
  layers carry to the output projection.

All else is random. It blurs the held columns a little, and a sentence's content is let into its length on purpose:
hence the spread. The readouts are fitted by least squares to what the random network makes of the clocks.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from model.attention import MultiHeadAttention
from model.config import TransformerConfig
from model.data import pad
from model.transformer import Layer, Transformer

LENGTH_RATIO = 1.1  # target tokens per source token
VOCAB_SIZE = 32_000
SHAPES = {
    "base": TransformerConfig(vocab_size=VOCAB_SIZE),
    "student": TransformerConfig(vocab_size=VOCAB_SIZE, d_model=256, ffn_dim=1536, decoder_layers=2),
    # That of OPUS-MT's models: twice the vocabulary, swish, an output bias that rules <pad> out.
    "opus-base": TransformerConfig(vocab_size=60_000, activation="silu", output_bias=True),
}
_LONGEST = 160  # tokens that the clocks are read up to
_FIRST_CLOCK_PERIOD = 250  # positions
_ATTENTION_SHARPNESS = 1.5  # standard deviation of queries and keys
_LENGTH_SPREAD = 4.0  # standard deviation, in tokens, of what a sentence's content adds to its length
_ENCODER_UPDATE, _DECODER_UPDATE = 0.5, 2.0  # size of what a feed-forward network adds, relative to its input
_ATTENTION_UPDATE = 0.5  # that of an attention, relative to a feed-forward network's
_RIDGE = 1e-3  # variance of the clocks' noise that the readouts allow for
_MARK_SCORE = 20.0  # by which the marked source position wins the attention of head 0
_RAMP_TOKENS = 3.0  # half the width of the ramp
_RAMP_LOGITS = 9.0  # half its height
_BEST_LOGIT = 5.0  # what the best of the random tokens has
_OUTPUT_BIAS = 0.1  # standard deviation of the output's bias


@torch.inference_mode()
def random_model(config: TransformerConfig, seed: int = 1) -> Transformer:
    """Returns a post-norm model of this shape in evaluation mode, float32, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    model = Transformer(config).eval()
    circuit = _Circuit(config)
    _randomise(model, circuit, generator)
    sources = [_random_ids(config, length, generator) for length in range(4, _LONGEST, 7)]
    source_ids = pad([[*ids, config.eos_id] for ids in sources], config.pad_id)
    target_ids = torch.randint(4, config.vocab_size, (len(sources), _LONGEST), generator=generator)
    circuit.lay(model, source_ids, target_ids)
    return model


class _Circuit:
    """What makes sentences end, in the columns that are kept free for it."""

    def __init__(self, config: TransformerConfig) -> None:
        width, pairs = config.d_model, config.d_model // 2
        periods = 2 * math.pi * 10000.0 ** (2 * np.arange(pairs) / width)
        first = int(np.searchsorted(periods, _FIRST_CLOCK_PERIOD))
        self.clock = torch.arange(2 * first, 2 * first + config.head_dim)
        self.signal = torch.arange(width - width // 8, width, 2)
        self.held = torch.cat([self.clock, self.signal])
        self.free = torch.tensor(sorted(set(range(width)) - set(self.held.tolist())))
        signs = torch.ones(len(self.signal))
        signs[1::2] = -1
        self.pattern = signs / math.sqrt(len(signs))  # zero mean: LayerNormalization does not shift it
        self.amplitude = 0.5 * math.sqrt(width)  # of the ramp on `pattern`
        self.head_dim = config.head_dim
        self.eos_id = config.eos_id

    def lay(self, model: Transformer, source_ids: Tensor, target_ids: Tensor) -> None:
        """Writes the circuit into a random model, fitted on these padded ids."""
        lengths = (source_ids != model.config.pad_id).sum(1)
        table = model.embedding.positions[:, self.clock]
        with self._holding(model.encoder):
            memory, visible = model.encode(source_ids)
        marked = memory[torch.arange(len(lengths)), lengths - 1]
        length_readout = _fit(marked[:, self.clock], lengths - 1, table)

        first = model.decoder[0]
        x = model.embedding(target_ids)
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        x = x + first.self_attention(x, None, causal)[0]
        self._hold(first.self_norm, x)
        x = first.self_norm(x)
        positions = torch.arange(x.shape[1]).expand(x.shape[:2])
        position_readout = _fit(x[:, :, self.clock].flatten(0, 1), positions.flatten(), table)
        self._subtract_length(first.cross_attention, length_readout, position_readout, marked)
        x = x + first.cross_attention(x, memory, visible)[0]
        self._hold(first.cross_norm, x)
        x = first.cross_norm(x)
        excess = positions - LENGTH_RATIO * (lengths[:, None] - 1)
        is_near = excess.abs() < _RAMP_TOKENS
        bias = float((x[:, :, self.clock] @ position_readout - excess)[is_near].mean())
        self._ramp(first.feed_forward.hidden, first.feed_forward.output, position_readout, bias)
        x = x + first.feed_forward(x)
        self._hold(first.feed_forward_norm, x)
        x = first.feed_forward_norm(x)
        with self._holding(model.decoder[1:]):
            for layer in model.decoder[1:]:
                x = layer(x, causal, memory, visible)

    def _subtract_length(
        self, cross: MultiHeadAttention, length_readout: Tensor, position_readout: Tensor, marked: Tensor
    ) -> None:
        """Makes head 0 copy the marked position's clock, and its output take the length from the target's clock."""
        width = cross.output.in_features
        query, key, value = cross.qkv.weight.split(width)
        head = slice(0, self.head_dim)
        query[head], key[head], value[head] = 0.0, 0.0, 0.0
        mark = float((marked[:, self.signal] @ self.pattern).mean())
        key[0, self.signal] = self.pattern * (4.0 / mark)
        cross.qkv.bias[0] = _MARK_SCORE / 4.0 * math.sqrt(self.head_dim)
        value[torch.arange(self.head_dim), self.clock] = 1.0
        content = marked[:, self.free].sum(1)
        spread = _LENGTH_SPREAD / content.std() * length_readout / length_readout.square().sum()
        value[head, self.free] = spread[:, None]
        step = position_readout / position_readout.square().sum()  # moves the clock by one position
        cross.output.weight[:, head] = 0.0
        cross.output.weight[self.clock[:, None], torch.arange(self.head_dim)] = -LENGTH_RATIO * torch.outer(
            step, length_readout
        )

    def _ramp(self, hidden: nn.Linear, output: nn.Linear, readout: Tensor, bias: float) -> None:
        """Sets hidden units 0 and 1: SIGNAL is pattern * amplitude * clamp((excess - middle) / _RAMP_TOKENS, -1, 1)."""
        middle = -_RAMP_TOKENS * _BEST_LOGIT / _RAMP_LOGITS  # so that eos overtakes the best token at an excess of 0
        for unit, start in enumerate((middle - _RAMP_TOKENS, middle + _RAMP_TOKENS)):
            hidden.weight[unit] = 0.0
            hidden.weight[unit, self.clock] = readout / _RAMP_TOKENS
            hidden.bias[unit] = (-bias - start) / _RAMP_TOKENS
        height = self.pattern * self.amplitude
        output.weight[:, :2] = 0.0
        output.weight[self.signal, 0] = height
        output.weight[self.signal, 1] = -height
        output.bias[self.signal] = -height

    @contextmanager
    def _holding(self, layers: Sequence[Layer]) -> Iterator[None]:
        """Sets the gains of the layers' LayerNormalizations as they are met."""
        norms = [module for layer in layers for module in layer.modules() if isinstance(module, nn.LayerNorm)]
        hooks = [norm.register_forward_pre_hook(lambda norm, inputs: self._hold(norm, inputs[0])) for norm in norms]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _hold(self, norm: nn.Module, x: Tensor) -> None:
        """Sets the gain of the held columns to what the norm will divide by, on average."""
        assert isinstance(norm, nn.LayerNorm)
        norm.weight[self.held] = x.std(-1).mean()


def _randomise(model: Transformer, circuit: _Circuit, generator: torch.Generator) -> None:
    def normal(weight: Tensor, size: float) -> None:
        weight.copy_(torch.randn(weight.shape, generator=generator) * size)

    width = model.config.d_model
    normal(model.embedding.tokens.weight, width**-0.5)
    embeddings = model.embedding.tokens.weight
    _silence(embeddings.T, circuit)
    embeddings[model.config.pad_id] = 0.0
    embeddings[model.config.eos_id, circuit.signal] = circuit.pattern * (_RAMP_LOGITS / circuit.amplitude)
    for layer in [*model.encoder, *model.decoder]:
        size = _ENCODER_UPDATE if layer in model.encoder else _DECODER_UPDATE
        for module in layer.modules():
            if isinstance(module, MultiHeadAttention):
                normal(module.qkv.weight, width**-0.5)
                module.qkv.weight[: 2 * width] *= _ATTENTION_SHARPNESS
                module.qkv.weight[:, circuit.held] = 0.0
                normal(module.output.weight, _ATTENTION_UPDATE * size * width**-0.5)
                _silence(module.output.weight, circuit)
        hidden, output = layer.feed_forward.hidden, layer.feed_forward.output
        normal(hidden.weight, width**-0.5)
        hidden.weight[:, circuit.held] = 0.0
        normal(output.weight, size * math.sqrt(2 / hidden.out_features))
        output.weight -= output.weight.mean(1, keepdim=True)  # or the mean of what ReLU lets through drowns all else
        _silence(output.weight, circuit)
    signs = torch.randint(0, 2, (width,), generator=generator) * 2.0 - 1.0
    signs[circuit.held] = 1.0
    model.decoder[-1].feed_forward_norm.weight.copy_(signs)  # else every token's likeliest successor is itself
    if model.output_bias is not None:
        normal(model.output_bias, _OUTPUT_BIAS)
        model.output_bias[model.config.eos_id] = 0.0
        model.output_bias[model.config.pad_id] = -math.inf


def _silence(weight: Tensor, circuit: _Circuit) -> None:
    """Makes what a weight [M, K] puts out zero in the held columns and zero on average, as LayerNormalization sees."""
    weight -= weight[circuit.free].mean(0)
    weight[circuit.held] = 0.0


def _random_ids(config: TransformerConfig, length: int, generator: torch.Generator) -> list[int]:
    ids: list[int] = torch.randint(4, config.vocab_size, (length - 1,), generator=generator).tolist()
    return ids


def _fit(clocks: Tensor, positions: Tensor, table: Tensor) -> Tensor:
    """Returns the weights [D] of a linear readout of the position from clocks [N, D] that are seen at `positions` [N].

    The clocks are taken as scale * table + shift, and the readout is fitted to that rather than to the noisy clocks
    themselves, which would flatten it. The ridge keeps the weights small, so that noise stays small.
    """
    seen = table[positions].flatten().double()
    design = torch.stack([seen, torch.ones_like(seen)], dim=1)
    scale, shift = torch.linalg.lstsq(design, clocks.flatten().double()).solution
    x = scale * table[:_LONGEST].double() + shift
    ridge = _RIDGE * _LONGEST * torch.eye(x.shape[1], dtype=torch.float64)
    readout: Tensor = torch.linalg.solve(x.T @ x + ridge, x.T @ torch.arange(_LONGEST, dtype=torch.float64))
    return readout.float()
