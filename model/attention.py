"""Multi-head scaled dot-product attention.

Dimension letters, here and in all rooms: B rows, S source, T target (queries), K keys, H heads, D head width, M model
width.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class MultiHeadAttention(nn.Module):
    """Self- or cross-attention with one joint projection for queries, keys and values.

    Source: "Attention Is All You Need", section 3.2 (arXiv:1706.03762).
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float, head_dim: int | None = None) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.width = num_heads * (head_dim or d_model // num_heads)  # of all heads together
        self.dropout = dropout
        self.qkv = nn.Linear(d_model, 3 * self.width)  # rows: queries, keys, values
        self.output = nn.Linear(self.width, d_model)

    def forward(
        self, queries: Tensor, memory: Tensor | None, visible: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attends from each query position to the visible positions of `memory`.

        Args:
            queries: [B, T, M].
            memory: [B, K, M]; None for self-attention.
            visible: bool, broadcastable to [B, H, T, K]; False where a key must not be seen.
            need_weights: also return the attention weights (slower).

        Returns:
            The context [B, T, M] and, if asked for, the weights [B, H, T, K].
        """
        if memory is None:
            q, k, v = self.qkv(queries).chunk(3, dim=-1)
        else:
            width = self.width
            q = functional.linear(queries, self.qkv.weight[:width], self.qkv.bias[:width])
            k, v = functional.linear(memory, self.qkv.weight[width:], self.qkv.bias[width:]).chunk(2, dim=-1)
        q, k, v = self._split(q), self._split(k), self._split(v)
        weights = None
        # On a CPU the gradient of PyTorch's fused attention takes several times as long in bfloat16.
        if need_weights or (self.training and not q.is_cuda):
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
            weights = scores.masked_fill(~visible, float("-inf")).softmax(dim=-1)
            context = functional.dropout(weights, self.dropout, self.training) @ v
        else:
            dropout = self.dropout if self.training else 0.0
            context = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible, dropout_p=dropout)
        joined = context.transpose(1, 2).flatten(2)  # [B, T, H * D]
        return self.output(joined), weights if need_weights else None

    def _split(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(-1, (self.num_heads, -1))
        return heads.transpose(1, 2)  # [B, H, T, D]


def causal_mask(length: int, device: torch.device, window: int = 0) -> Tensor:
    """Returns bool [1, 1, T, T]: position t sees 0..t, or the last `window` of these, itself included."""
    visible = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    return (visible.triu(1 - window) if window else visible)[None, None]
