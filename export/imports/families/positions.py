"""Tables of positions as the families compute them: all sines and cosines, none alike.

Each is computed in the float type that its family's own code uses, since ids of near ties depend on the last bit.
"""

import math

import numpy as np
import torch
from torch import Tensor


def hugging_face_marian(length: int, width: int) -> Tensor:
    """Returns float32 [length, width]: sines in the left half, cosines in the right; source: `transformers`' Marian."""
    powers = np.power(10000.0, 2 * (np.arange(width) // 2) / width)
    angles = np.arange(length)[:, None] / powers
    return torch.from_numpy(np.concatenate([np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])], axis=1)).float()


def tensor2tensor(length: int, width: int, first: int = 0) -> Tensor:
    """Returns float32 [length, width] likewise, with frequencies down to exactly 1/10000.

    Args:
        length: of the table.
        width: M, even.
        first: number of the first position: fairseq counts from its padding id + 1.

    Source: fairseq's sinusoidal_positional_embedding, and Marian's own (src/graph/node_initializers.cpp).
    """
    half = width // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float32) * -(math.log(10000) / (half - 1)))
    angles = torch.arange(first, first + length, dtype=torch.float32)[:, None] * frequencies[None, :]
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)
