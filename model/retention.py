"""Retention in place of a decoder's self-attention: a state of fixed size in which what is earlier counts less.

Source: "Retentive Network: A Successor to Transformer for Large Language Models" (arXiv:2307.08621). Its rotations are
left out, as the embeddings have positions, and the decays are for sentences instead of documents.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

# Tokens after which about 1 / e of a head's state is left, for the first and the last head. From head to head the
# number grows by the same factor. Nobody has measured what other numbers do.
_FIRST_MEMORY, _LAST_MEMORY = 2, 64
NORM_EPS = 1e-5  # added to the variance of what a head reads


class Retention(nn.Module):
    """Per head S = exp(g) * S + k v^T, with S = 0 at first; the head reads S^T q / sqrt(D).

    What a head reads is normalised to mean 0 and variance 1, as sums of products have any size. A gate, the SiLU of
    another projection of the same input, then weighs each of the values.

    Args:
        d_model: width M of input and output.
        num_heads: H.
        head_dim: width D of each head.
    """

    decays: Tensor

    def __init__(self, d_model: int, num_heads: int, head_dim: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * num_heads * head_dim)  # rows: queries, keys, values
        self.gate = nn.Linear(d_model, num_heads * head_dim)
        self.output = nn.Linear(num_heads * head_dim, d_model)
        self.register_buffer("decays", decays(num_heads), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Maps [B, T, M] to [B, T, M]; a position depends on itself and on those before."""
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        places = torch.arange(x.shape[1], device=x.device)
        age = places[:, None] - places  # of a key, seen from a query
        shares = torch.exp(self.decays[:, None, None] * age).masked_fill(age < 0, 0.0)  # [H, T, T]
        scores = (q @ k.mT) * (shares / math.sqrt(q.shape[-1]))
        read = functional.layer_norm(scores @ v, v.shape[-1:], eps=NORM_EPS)
        result: Tensor = self.output(read.transpose(1, 2).flatten(2) * functional.silu(self.gate(x)))
        return result


def decays(num_heads: int) -> Tensor:
    """Returns g of each head, float32 [H], the logarithm of what a token leaves of the state before it."""
    memories = torch.logspace(math.log2(_FIRST_MEMORY), math.log2(_LAST_MEMORY), num_heads, base=2, dtype=torch.float64)
    return torch.log1p(-1 / memories).float()
