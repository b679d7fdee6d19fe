"""The encoder-decoder Transformer of "Attention Is All You Need" (arXiv:1706.03762), and its kin: see its config."""

import math
from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.attention import MultiHeadAttention, causal_mask
from model.config import Activation, Mixer, StackConfig, TransformerConfig
from model.dropout import Dropout
from model.network import Network, TokenEmbedding
from model.retention import Retention
from model.ssru import SimplerSimpleRecurrentUnit

QUICK_GELU = 1.702
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "silu": functional.silu,
    "gelu": functional.gelu,
    "quick_gelu": lambda x: x * torch.sigmoid(QUICK_GELU * x),
}


class FeedForward(nn.Module):
    """Position-wise feed-forward network: two linear maps with an activation between (section 3.3)."""

    def __init__(self, config: TransformerConfig, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(config.d_model, width)
        self.output = nn.Linear(width, config.d_model)
        self.dropout = Dropout(config.activation_dropout)
        self.activation = config.activation

    def forward(self, x: Tensor) -> Tensor:
        """Maps [B, T, M] to [B, T, M]."""
        result: Tensor = self.output(self.dropout(ACTIVATIONS[self.activation](self.hidden(x))))
        return result


class Layer(nn.Module):
    """One encoder layer, or with `has_cross` one decoder layer: attention(s) and feed-forward, each with a residual.

    In a decoder layer an SSRU or retention, `recurrence`, may take the place of self-attention.
    """

    def __init__(self, config: TransformerConfig, has_cross: bool) -> None:
        super().__init__()
        stack = config.decoder if has_cross else config.encoder
        self.is_pre_norm = stack.is_pre_norm
        self.dropout = Dropout(config.dropout)
        self.mixer: Mixer = config.decoder_mixer if has_cross else "attention"
        if self.mixer == "ssru":
            self.ssru = SimplerSimpleRecurrentUnit(config.d_model)
        elif self.mixer == "retention":
            self.retention = Retention(config.d_model, stack.num_heads, stack.head_dim)
        else:
            self.self_attention = _attention(config, stack)
        self.self_norm = _layer_norm(config)
        if has_cross:
            self.cross_attention = _attention(config, stack)
            self.cross_norm = _layer_norm(config)
        self.feed_forward = FeedForward(config, stack.ffn_dim)
        self.feed_forward_norm = _layer_norm(config)

    @property
    def recurrence(self) -> nn.Module | None:
        """What takes the place of self-attention, if anything does: it maps [B, T, M] to [B, T, M]."""
        return None if self.mixer == "attention" else cast("nn.Module", getattr(self, self.mixer))

    def forward(
        self, x: Tensor, visible: Tensor, memory: Tensor | None = None, memory_visible: Tensor | None = None
    ) -> Tensor:
        """Maps [B, T, M] to [B, T, M]; `memory` [B, S, M] only for a decoder layer."""
        return self.attend(x, visible, memory, memory_visible, need_weights=False)[0]

    def attend(
        self, x: Tensor, visible: Tensor, memory: Tensor | None, memory_visible: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """As `forward`, and returns the cross-attention weights [B, H, T, S] when asked for."""
        weights = None
        mixed = self._before(x, self.self_norm)
        recurrence = self.recurrence
        mixed = self.self_attention(mixed, None, visible)[0] if recurrence is None else recurrence(mixed)
        x = self._after(x, mixed, self.self_norm)
        if memory is not None:
            attended, weights = self.cross_attention(
                self._before(x, self.cross_norm), memory, memory_visible, need_weights
            )
            x = self._after(x, attended, self.cross_norm)
        hidden = self.feed_forward(self._before(x, self.feed_forward_norm))
        return self._after(x, hidden, self.feed_forward_norm), weights

    def _before(self, x: Tensor, norm: nn.Module) -> Tensor:
        result: Tensor = norm(x) if self.is_pre_norm else x
        return result

    def _after(self, x: Tensor, update: Tensor, norm: nn.Module) -> Tensor:
        total: Tensor = x + self.dropout(update)
        result: Tensor = total if self.is_pre_norm else norm(total)
        return result


class Embedding(TokenEmbedding):
    """Token embedding plus positions (section 3.5)."""

    positions: Tensor

    def __init__(self, config: TransformerConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        if config.positions == "learned":
            self.positions = nn.Parameter(torch.empty(config.max_positions, config.d_model))
        elif config.positions == "sinusoidal":
            self.register_buffer("positions", sinusoids(config.max_positions, config.d_model), persistent=False)

    def forward(self, ids: Tensor, positions: Tensor | None = None, norm: nn.Module | None = None) -> Tensor:
        """Maps int64 ids [B, T] to [B, T, M], by another table than its own positions' if one is given."""
        table = self.positions if positions is None else positions
        embedded = self.tokens(ids) * self.scale + table[: ids.shape[1]]
        result: Tensor = self.dropout(embedded if norm is None else norm(embedded))
        return result

    def initialise(self) -> None:
        """Draws the weights, those of learned positions too."""
        super().initialise()
        for positions in self.parameters(recurse=False):
            nn.init.normal_(positions, std=self.tokens.embedding_dim**-0.5)


class LayeredNetwork(Network):
    """What families of attention layers share: the encoder.

    The layers that follow the encoder are `decoder`; with `has_cross` they attend to it. A family says what they read.
    """

    embedding: Embedding
    source_embedding: Embedding | None
    encoder_positions: Tensor
    decoder_positions: Tensor

    def __init__(self, config: TransformerConfig, has_cross: bool) -> None:
        super().__init__(config, Embedding)
        if config.positions == "table":
            for name in ("encoder_positions", "decoder_positions"):
                self.register_buffer(name, torch.zeros(config.max_positions, config.d_model))
        encoder = nn.ModuleList(Layer(config, has_cross=False) for _ in range(config.encoder_layers))
        decoder = nn.ModuleList(Layer(config, has_cross) for _ in range(config.decoder_layers))
        self.encoder = cast("Sequence[Layer]", encoder)
        self.decoder = cast("Sequence[Layer]", decoder)
        self.encoder_embedding_norm = _norm_if(config.embedding_norm, config)
        self.decoder_embedding_norm = _norm_if(config.embedding_norm, config)
        self.encoder_norm = _norm_if(config.encoder.has_final_norm, config)
        self.decoder_norm = _norm_if(config.decoder.has_final_norm, config)
        self.initialise()

    @property
    def source_positions(self) -> Tensor:
        """What is added to embedded source tokens by position [P, M]."""
        has_table = self.config.positions == "table"
        return self.encoder_positions if has_table else (self.source_embedding or self.embedding).positions

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the encoder's output [B, S, M] and bool [B, 1, 1, S], False at padding."""
        visible = (source_ids != self.config.pad_id)[:, None, None, :]
        embedding = self.source_embedding or self.embedding
        x = embedding(source_ids, self.source_positions, self.encoder_embedding_norm)
        for layer in self.encoder:
            x = layer(x, visible)
        memory: Tensor = self.encoder_norm(x)
        return memory, visible

    def initialise(self) -> None:
        """Draws the weights that all families have. A family draws its own ones."""
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1 and name.startswith(("encoder.", "decoder.")):
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        super().initialise()


class Transformer(LayeredNetwork):
    """The family of networks that write a translation token by token, each by those before."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config, has_cross=True)

    @property
    def target_positions(self) -> Tensor:
        """What is added to embedded target tokens by position [P, M]."""
        return self.decoder_positions if self.config.positions == "table" else self.embedding.positions

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Teacher forcing: scores of the token that follows each target prefix.

        Args:
            source_ids: int64 [B, S], padded with `pad_id` behind each row's end-of-sentence token.
            target_ids: int64 [B, T], starting with `bos_id`, padded likewise.

        Returns:
            Logits [B, T, V].
        """
        return self.logits(self.states(source_ids, target_ids))

    def states(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Returns what `forward` projects to logits: the decoder's output [B, T, M]."""
        memory, visible = self.encode(source_ids)
        return self.decode_states(target_ids, memory, visible)

    def decode_states(self, target_ids: Tensor, memory: Tensor, memory_visible: Tensor) -> Tensor:
        """Returns what `decode` projects to logits: [B, T, M]."""
        return self._decode(target_ids, memory, memory_visible, need_weights=False)[0]

    def decode(
        self, target_ids: Tensor, memory: Tensor, memory_visible: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns logits [B, T, V] and, when asked for, each layer's cross-attention weights [B, H, T, S]."""
        states, all_weights = self._decode(target_ids, memory, memory_visible, need_weights)
        return self.logits(states), all_weights

    def _decode(
        self, target_ids: Tensor, memory: Tensor, memory_visible: Tensor, need_weights: bool
    ) -> tuple[Tensor, list[Tensor]]:
        visible = causal_mask(target_ids.shape[1], target_ids.device, self.config.self_window)
        x = self.embedding(target_ids, self.target_positions, self.decoder_embedding_norm)
        all_weights: list[Tensor] = []
        for layer in self.decoder:
            x, weights = layer.attend(x, visible, memory, memory_visible, need_weights)
            if weights is not None:
                all_weights.append(weights)
        return self.decoder_norm(x), all_weights


def _attention(config: TransformerConfig, stack: StackConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config.d_model, stack.num_heads, config.activation_dropout, stack.head_dim)


def _layer_norm(config: TransformerConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)


def _norm_if(has_norm: bool, config: TransformerConfig) -> nn.Module:
    return _layer_norm(config) if has_norm else nn.Identity()


def sinusoids(length: int, width: int) -> Tensor:
    """Returns float32 [length, width]: sines at even, cosines at odd columns, wavelengths 2 pi to 20000 pi."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table.float()
