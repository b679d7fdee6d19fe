"""The keys and values of the sentences that one lane runs, in rows without gaps and buffers no longer than needed.

Attention kernels pay for a buffer's length, not for what of it is used, so the buffers grow and shrink in buckets of
positions; and the step writes to them in place, so a step with B rows sees the first B rows of each buffer as one
contiguous tensor.
"""

import numpy as np
from numpy.typing import DTypeLike, NDArray

from server.scheduler import RowMoves

BUCKET = 16  # positions: what is moved on growth and what is wasted stay both small


class KVCache:
    """Self- and cross-attention caches: per decoder layer a key and a value tensor [B, H, positions, D].

    Attributes:
        self_attention, cross_attention: [2 * layers, max_rows, H, positions, D]; keys at even, values at odd indices.
        layout: raised whenever a buffer is replaced, so that whoever holds its address binds it again.
    """

    def __init__(self, *, num_layers: int, num_heads: int, head_dim: int, max_rows: int, dtype: DTypeLike) -> None:
        shape = (2 * num_layers, max_rows, num_heads, BUCKET, head_dim)
        self.self_attention: NDArray[np.generic] = np.zeros(shape, dtype)
        self.cross_attention: NDArray[np.generic] = np.zeros(shape, dtype)
        self.layout = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of both buffers."""
        return self.self_attention.nbytes + self.cross_attention.nbytes

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """Makes room for so many positions in the first `num_rows` rows; gives back what is more than half unused."""
        self.self_attention = self._fit(self.self_attention, num_rows, self_positions)
        self.cross_attention = self._fit(self.cross_attention, num_rows, cross_positions)

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
        if moves.to:
            to, source = np.array(moves.to), np.array(moves.from_)
            _copy_rows(self.self_attention, to, source, self_positions)
            is_foreign = ~np.array(moves.is_own)
            _copy_rows(self.cross_attention, to[is_foreign], source[is_foreign], cross_positions)

    def _fit(self, buffer: NDArray[np.generic], num_rows: int, positions: int) -> NDArray[np.generic]:
        needed = -(-positions // BUCKET) * BUCKET
        capacity = buffer.shape[3]
        if needed <= capacity <= 2 * needed:
            return buffer
        kept = min(needed, capacity)
        # Zeros, not garbage: kernels may touch positions behind a row's length, and 0 * NaN is NaN.
        fitted = np.zeros((*buffer.shape[:3], needed, buffer.shape[4]), buffer.dtype)
        fitted[:, :num_rows, :, :kept] = buffer[:, :num_rows, :, :kept]
        self.layout += 1
        return fitted


def _copy_rows(buffer: NDArray[np.generic], to: NDArray[np.int64], source: NDArray[np.int64], positions: int) -> None:
    if to.size:
        buffer[:, to, :, :positions] = buffer[:, source, :, :positions]
