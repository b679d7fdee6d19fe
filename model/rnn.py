"""Recurrent encoder-decoders: a bidirectional LSTM reads the source, an LSTM writes the translation token by token.

The decoder's LSTMs begin with what the encoder's last layer ended with. Attention to the source comes after them, and
what it finds does not go back into them: so a whole target is trained at once, and a step keeps two vectors of each
layer, however long its row is.

The letters of shapes are those of `model.transformer`, and W for `head_width`, the width of the states.

Source: "Effective Approaches to Attention-based Neural Machine Translation" (arXiv:1508.04025), whose global attention
this is, without input feeding; additive scores are of arXiv:1409.0473.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from model.config import AttentionScore, TransformerConfig
from model.dropout import Dropout
from model.network import Network


class BidirectionalLSTM(nn.Module):
    """An LSTM that reads a sentence from its first token, and one that reads it from its last; each has half of W."""

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__()
        self.forwards = _lstm(input_width, width // 2)
        self.backwards = _lstm(input_width, width // 2)

    def forward(self, x: Tensor, reversal: Tensor) -> Tensor:
        """Maps [B, S, I] to [B, S, W]; `reversal` int64 [B * S] is the place of each position in the reversed rows."""
        from_last = _run(self.backwards, _reorder(x, reversal))
        return torch.cat([_run(self.forwards, x), _reorder(from_last, reversal)], dim=-1)


class Attention(nn.Module):
    """One head over the encoder's states, of which every score is a product with a key, or the additive one."""

    def __init__(self, score: AttentionScore, width: int) -> None:
        super().__init__()
        self.is_additive = score == "additive"
        has_key = score in ("general", "additive")
        self.key = nn.Linear(width, width, bias=self.is_additive) if has_key else nn.Identity()
        if self.is_additive:
            self.query = nn.Linear(width, width, bias=False)
            self.energy = nn.Parameter(torch.empty(width).normal_(std=width**-0.5))

    def forward(self, queries: Tensor, memory: Tensor, visible: Tensor) -> Tensor:
        """Returns the context [B, T, W] of queries [B, T, W] in memory [B, S, W]; `visible` is bool [B, 1, S]."""
        scores = self._scores(queries, self.key(memory)).masked_fill(~visible, -torch.inf)
        return scores.softmax(dim=-1).to(memory.dtype) @ memory

    def _scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        if not self.is_additive:
            return queries.to(keys.dtype) @ keys.mT
        return torch.tanh(self.query(queries)[:, :, None] + keys[:, None]) @ self.energy


class Decoder(nn.Module):
    """The LSTMs of the target, what they begin with, the attention if there is any, and the attentional vector."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width, num_layers = config.head_dim, config.decoder_layers
        widths = [config.d_model] + [width] * (num_layers - 1)
        self.layers = cast("Sequence[nn.LSTM]", nn.ModuleList(_lstm(each, width) for each in widths))
        self.bridge = nn.Linear(width, 2 * num_layers * width)  # of each layer: hidden state, cell
        has_attention = config.attention_score != "none"
        self.attention = Attention(config.attention_score, width) if has_attention else None
        self.combination = nn.Linear((1 + has_attention) * width, config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, memory: Tensor, visible: Tensor) -> Tensor:
        """Maps embedded tokens [B, T, M] to [B, T, M]; `memory` is [B, S, W], `visible` bool [B, 1, S]."""
        starts = self.starts(memory, visible)
        for i, layer in enumerate(self.layers):
            x = _run(layer, self.dropout(x) if i else x, starts[:, i])
        if self.attention is not None:
            x = torch.cat([self.attention(x, memory, visible).to(x.dtype), x], dim=-1)
        result: Tensor = self.dropout(torch.tanh(self.combination(x)))
        return result

    def starts(self, memory: Tensor, visible: Tensor) -> Tensor:
        """Returns what each layer begins with, hidden state and cell, [B, L, 2, W]."""
        forwards, backwards = memory.chunk(2, dim=-1)
        last = visible.sum(dim=-1)[:, :, None] - 1
        end = forwards.gather(1, last.expand(-1, -1, forwards.shape[-1]))[:, 0]
        started: Tensor = self.bridge(torch.cat([end, backwards[:, 0]], dim=-1))
        return started.view(len(started), len(self.layers), 2, -1)


class RecurrentNetwork(Network):
    """The family of recurrent networks, which write a translation token by token."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        width = config.head_dim
        widths = [config.d_model] + [width] * (config.encoder_layers - 1)
        self.encoder = cast(
            "Sequence[BidirectionalLSTM]", nn.ModuleList(BidirectionalLSTM(each, width) for each in widths)
        )
        self.decoder = Decoder(config)
        self.dropout = Dropout(config.dropout)
        self.initialise()

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Teacher forcing, as `Transformer.forward`: logits [B, T, V] of int64 [B, S] and [B, T]."""
        return self.logits(self.states(source_ids, target_ids))

    def states(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Returns what `forward` projects to logits: the attentional vectors [B, T, M]."""
        return self.decode_states(target_ids, *self.encode(source_ids))

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the encoder's states [B, S, W] and bool [B, 1, S], False at padding."""
        visible = source_ids != self.config.pad_id
        x = (self.source_embedding or self.embedding)(source_ids)
        reversal = _reversal(visible)
        for i, layer in enumerate(self.encoder):
            x = layer(self.dropout(x) if i else x, reversal)
        return x, visible[:, None]

    def decode_states(self, target_ids: Tensor, memory: Tensor, memory_visible: Tensor) -> Tensor:
        """Returns what is projected to logits, [B, T, M], of targets and of what `encode` returned."""
        states: Tensor = self.decoder(self.embedding(target_ids), memory, memory_visible)
        return states


def _lstm(input_width: int, width: int) -> nn.LSTM:
    """Returns one layer that at first keeps what it has: gates near one half would halve it at each token."""
    lstm = nn.LSTM(input_width, width, batch_first=True)
    with torch.no_grad():
        lstm.get_parameter("bias_ih_l0")[width : 2 * width] = 1.0
    return lstm


def _run(lstm: nn.LSTM, x: Tensor, start: Tensor | None = None) -> Tensor:
    """Maps [B, T, I] to the hidden states [B, T, W]; `start` [B, 2, W] is the first hidden state and cell, else zero.

    On a GPU autocast would take float16, in which small gradients vanish. There it runs in float32.
    """
    if not x.is_cuda:
        return _hidden_states(lstm, x, start)
    with torch.autocast("cuda", enabled=False):
        return _hidden_states(lstm, x.float(), None if start is None else start.float())


def _hidden_states(lstm: nn.LSTM, x: Tensor, start: Tensor | None) -> Tensor:
    first = None if start is None else (start[None, :, 0].contiguous(), start[None, :, 1].contiguous())
    states: Tensor = lstm(x, first)[0]
    return states


def _reversal(visible: Tensor) -> Tensor:
    """Returns where each position of flattened rows is once each row is reversed up to its padding, int64 [B * S]."""
    num_rows, length = visible.shape
    positions = torch.arange(length, device=visible.device)
    last = visible.sum(dim=1, keepdim=True) - 1
    reversed_positions = torch.where(visible, last - positions, positions)
    rows = torch.arange(num_rows, device=visible.device)[:, None]
    return (rows * length + reversed_positions).flatten()


def _reorder(x: Tensor, places: Tensor) -> Tensor:
    """Returns x [B, S, I] with its B * S vectors in another order."""
    return x.flatten(0, 1).index_select(0, places).view_as(x)
