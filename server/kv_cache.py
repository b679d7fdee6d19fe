"""The keys and values of the sentences that one lane runs, in rows without gaps and buffers no longer than needed.

Attention kernels pay for a buffer's length, not for what of it is used, so the buffers grow and shrink in buckets of
positions; and the step writes to them in place, so a step with B rows sees the first B rows of each buffer as one
contiguous tensor.
"""

import math
import mmap

import numpy as np
from numpy.typing import DTypeLike, NDArray

from server.scheduler import RowMoves

BUCKET = 16  # positions: what is moved on growth and what is wasted stay both small
_MOST_SPARE = 1.5  # times what is needed that a buffer may have


class KVCache:
    """Self- and cross-attention caches: per decoder layer a key and a value tensor [max_rows, H, positions, D].

    Attributes:
        self_attention, cross_attention: 2 * layers tensors each, keys at even and values at odd indices. Each is a
            buffer of its own, so that fitting them to another length never holds more than one of them twice.
        layout: raised whenever buffers are replaced, so that whoever holds their addresses binds them again.
    """

    def __init__(self, *, num_layers: int, num_heads: int, head_dim: int, max_rows: int, dtype: DTypeLike) -> None:
        shape = (max_rows, num_heads, BUCKET, head_dim)
        self.self_attention: list[NDArray[np.generic]] = [_zeros(shape, dtype) for _ in range(2 * num_layers)]
        self.cross_attention: list[NDArray[np.generic]] = [_zeros(shape, dtype) for _ in range(2 * num_layers)]
        self.layout = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all buffers."""
        return sum(tensor.nbytes for tensor in (*self.self_attention, *self.cross_attention))

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """Makes room for so many positions in the first `num_rows` rows; gives back what is far too much."""
        self._fit(self.self_attention, num_rows, self_positions)
        self._fit(self.cross_attention, num_rows, cross_positions)

    def admit(self, row: int, cross: list[NDArray[np.generic]], index: int, length: int) -> None:
        """Fills a row with an encoded sentence.

        Args:
            row: a free row of a cache that `reserve` has made large enough.
            cross: per tensor of `cross_attention` the encoder's output [B, H, S, D].
            index: the sentence's row there.
            length: its source tokens.
        """
        for tensor, encoded in zip(self.cross_attention, cross, strict=True):
            tensor[row, :, :length] = encoded[index, :, :length]

    def move(self, moves: RowMoves, self_positions: int, cross_positions: int) -> None:
        """Copies rows, of each no more than the given positions."""
        if not moves.to:
            return
        to, source, is_foreign = np.array(moves.to), np.array(moves.from_), ~np.array(moves.is_own)
        for tensor in self.self_attention:
            tensor[to, :, :self_positions] = tensor[source, :, :self_positions]
        if is_foreign.any():
            to, source = to[is_foreign], source[is_foreign]
            for tensor in self.cross_attention:
                tensor[to, :, :cross_positions] = tensor[source, :, :cross_positions]

    def _fit(self, tensors: list[NDArray[np.generic]], num_rows: int, positions: int) -> None:
        needed = -(-positions // BUCKET) * BUCKET
        max_rows, num_heads, capacity, head_dim = tensors[0].shape
        if needed <= capacity <= _MOST_SPARE * needed:
            return
        kept = min(needed, capacity)
        for i, tensor in enumerate(tensors):
            # Zeros, not garbage: kernels may touch positions behind a row's length, and 0 * NaN is NaN.
            fitted = _zeros((max_rows, num_heads, needed, head_dim), tensor.dtype)
            fitted[:num_rows, :, :kept] = tensor[:num_rows, :, :kept]
            tensors[i] = fitted
        self.layout += 1


def _zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[np.generic]:
    """A mapping of its own: rows that are never used take no memory, and what is freed goes back at once."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)
