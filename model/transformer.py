"""The encoder-decoder Transformer of "Attention Is All You Need" (arXiv:1706.03762), pre- or post-norm."""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.attention import MultiHeadAttention, causal_mask
from model.config import TransformerConfig
from model.dropout import Dropout


class FeedForward(nn.Module):
    """Position-wise feed-forward network: two linear maps with a ReLU between (section 3.3)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.hidden = nn.Linear(config.d_model, config.ffn_dim)
        self.output = nn.Linear(config.ffn_dim, config.d_model)
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Maps [B, T, M] to [B, T, M]."""
        result: Tensor = self.output(self.dropout(functional.relu(self.hidden(x))))
        return result


class Layer(nn.Module):
    """One encoder layer, or with `has_cross` one decoder layer: attention(s) and feed-forward, each with a residual."""

    def __init__(self, config: TransformerConfig, has_cross: bool) -> None:
        super().__init__()
        self.is_pre_norm = config.norm == "pre"
        self.dropout = Dropout(config.dropout)
        self.self_attention = MultiHeadAttention(config.d_model, config.num_heads, config.activation_dropout)
        self.self_norm = nn.LayerNorm(config.d_model)
        if has_cross:
            self.cross_attention = MultiHeadAttention(config.d_model, config.num_heads, config.activation_dropout)
            self.cross_norm = nn.LayerNorm(config.d_model)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)

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
        attended, _ = self.self_attention(self._before(x, self.self_norm), None, visible)
        x = self._after(x, attended, self.self_norm)
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


class Embedding(nn.Module):
    """Token embedding times sqrt(M) plus positions (sections 3.4 and 3.5); its weight is also the output projection."""

    positions: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.tokens = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_id)
        if config.positions == "learned":
            self.positions = nn.Parameter(torch.empty(config.max_positions, config.d_model))
        else:
            self.register_buffer("positions", sinusoids(config.max_positions, config.d_model), persistent=False)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """Maps int64 ids [B, T] to [B, T, M]."""
        result: Tensor = self.dropout(self.tokens(ids) * self.scale + self.positions[: ids.shape[1]])
        return result

    def logits(self, x: Tensor) -> Tensor:
        """Maps [B, T, M] to unnormalised scores [B, T, V]."""
        return functional.linear(x, self.tokens.weight)


class Transformer(nn.Module):
    """Encoder and decoder over one joint vocabulary with tied embeddings and output projection."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        encoder = nn.ModuleList(Layer(config, has_cross=False) for _ in range(config.encoder_layers))
        decoder = nn.ModuleList(Layer(config, has_cross=True) for _ in range(config.decoder_layers))
        self.encoder = cast("Sequence[Layer]", encoder)
        self.decoder = cast("Sequence[Layer]", decoder)
        is_pre_norm = config.norm == "pre"
        self.encoder_norm: nn.Module = nn.LayerNorm(config.d_model) if is_pre_norm else nn.Identity()
        self.decoder_norm: nn.Module = nn.LayerNorm(config.d_model) if is_pre_norm else nn.Identity()
        self._initialise()

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Teacher forcing: scores of the token that follows each target prefix.

        Args:
            source_ids: int64 [B, S], padded with `pad_id` behind each row's end-of-sentence token.
            target_ids: int64 [B, T], starting with `bos_id`, padded likewise.

        Returns:
            Logits [B, T, V].
        """
        return self.embedding.logits(self.states(source_ids, target_ids))

    def states(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Returns what `forward` projects to logits: the decoder's output [B, T, M]."""
        memory, visible = self.encode(source_ids)
        return self._decode(target_ids, memory, visible, need_weights=False)[0]

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the encoder's output [B, S, M] and bool [B, 1, 1, S], False at padding."""
        visible = (source_ids != self.config.pad_id)[:, None, None, :]
        x = self.embedding(source_ids)
        for layer in self.encoder:
            x = layer(x, visible)
        memory: Tensor = self.encoder_norm(x)
        return memory, visible

    def decode(
        self, target_ids: Tensor, memory: Tensor, memory_visible: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns logits [B, T, V] and, when asked for, each layer's cross-attention weights [B, H, T, S]."""
        states, all_weights = self._decode(target_ids, memory, memory_visible, need_weights)
        return self.embedding.logits(states), all_weights

    def _decode(
        self, target_ids: Tensor, memory: Tensor, memory_visible: Tensor, need_weights: bool
    ) -> tuple[Tensor, list[Tensor]]:
        visible = causal_mask(target_ids.shape[1], target_ids.device)
        x = self.embedding(target_ids)
        all_weights: list[Tensor] = []
        for layer in self.decoder:
            x, weights = layer.attend(x, visible, memory, memory_visible, need_weights)
            if weights is not None:
                all_weights.append(weights)
        return self.decoder_norm(x), all_weights

    def _initialise(self) -> None:
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1 and not name.startswith("embedding."):
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        nn.init.normal_(self.embedding.tokens.weight, std=self.config.d_model**-0.5)
        with torch.no_grad():
            self.embedding.tokens.weight[self.config.pad_id].zero_()
        if self.config.positions == "learned":
            nn.init.normal_(self.embedding.positions, std=self.config.d_model**-0.5)


def sinusoids(length: int, width: int) -> Tensor:
    """Returns float32 [length, width]: sines at even, cosines at odd columns, wavelengths 2 pi to 20000 pi."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table.float()
