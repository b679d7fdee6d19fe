"""The keys and values of the sentences of one batch, in rows without gaps and buffers no longer than needed.

Attention kernels pay for a buffer's length, not for what of it is used, so the buffers grow and shrink in buckets of
positions; and the step writes to them in place, so a step with B rows sees the first B rows of each buffer as one
contiguous tensor. An encoded sentence is there once, in a slot that its beams share.

A decoder with SSRUs has states in place of self-attention's keys and values: of one size, however long the row.
"""

import math
import mmap
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from server.network import RowMoves
from server.runtime.sizes import fits, round_up
from server.runtime.slots import SlotTable

BUCKET = 16  # positions: what is moved on growth and what is wasted stay both small


class KVCache:
    """Self- and cross-attention caches: per decoder layer a key and a value tensor [max_rows, H, positions, D].

    `states` is the shape of a row's states, float32, for a decoder that has them in place of self-attention.

    Attributes:
        slots: which rows share which slot.
        layout: raised whenever tensors are replaced, so that whoever holds their addresses binds them again.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        num_heads: int,
        head_dim: int,
        max_rows: int,
        dtype: DTypeLike,
        states: tuple[int, int, int] | None = None,
    ) -> None:
        shape = (max_rows, num_heads, BUCKET, head_dim)
        self._has_states = states is not None
        self._self_buffers = [_Buffer(shape, dtype) for _ in range(2 * num_layers)]
        if states is not None:
            self._self_buffers = [_Buffer((max_rows, *states), np.float32)]
        self._cross_buffers = [_Buffer(shape, dtype) for _ in range(2 * num_layers)]
        self.slots = SlotTable()
        self.layout = 0

    @property
    def self_attention(self) -> list[NDArray[np.generic]]:
        """2 * layers tensors by row, keys at even and values at odd indices; or one of states.

        The next `reserve` may replace them, so a caller must not keep them.
        """
        return [buffer.tensor for buffer in self._self_buffers]

    @property
    def cross_attention(self) -> list[NDArray[np.generic]]:
        """The same by slot."""
        return [buffer.tensor for buffer in self._cross_buffers]

    @property
    def size_bytes(self) -> int:
        """Bytes of all buffers. Another thread may ask, such as that of the metrics."""
        return sum(buffer.num_bytes for buffer in (*self._self_buffers, *self._cross_buffers))

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """Makes room for so many positions, and not for far more. Only the first `num_rows` rows stay."""
        to, from_ = self.slots.tidy(num_rows)
        if to:
            for tensor in self.cross_attention:
                tensor[to] = tensor[from_]
        if not self._has_states:
            self._fit(self._self_buffers, num_rows, self_positions)
        self._fit(self._cross_buffers, len(self.slots), cross_positions)

    def admit(self, row: int, cross: Sequence[NDArray[np.generic]], index: int, length: int) -> None:
        """Fills a row with an encoded sentence.

        Args:
            row: a free row of a cache that `reserve` has made large enough.
            cross: per tensor of `cross_attention` the encoder's output [B, H, S, D].
            index: the sentence's row there.
            length: its source tokens.
        """
        slot = self.slots.admit(row)
        for tensor, encoded in zip(self.cross_attention, cross, strict=True):
            tensor[slot, :, :length] = encoded[index, :, :length]

    def move(self, moves: RowMoves, positions: int) -> None:
        """Copies rows, of self-attention no more than the given positions, states whole; `reserve` has to follow."""
        tensors = self.self_attention
        for to, from_, common in zip(moves.to, moves.from_, moves.common, strict=True):
            copied = slice(None) if self._has_states else slice(common, positions)
            for tensor in tensors:
                tensor[to, :, copied] = tensor[from_, :, copied]
            self.slots.share(to, from_)

    def _fit(self, buffers: list["_Buffer"], num_rows: int, positions: int) -> None:
        needed = round_up(positions, BUCKET)
        capacity = buffers[0].tensor.shape[2]
        if not fits(needed, capacity):
            _, num_heads, _, head_dim = buffers[0].tensor.shape
            kept = np.empty((num_rows, num_heads, min(needed, capacity), head_dim), buffers[0].tensor.dtype)
            for buffer in buffers:
                buffer.fit(needed, kept)
            self.layout += 1


class _Buffer:
    """A tensor [rows, H, positions, D] in a mapping of its own, twice as long as it must be.

    Only what has been written to takes memory, so rows that are never used and the spare half cost nothing. To lay the
    rows out for another length touches no page that is not touched already: new pages would take longer than the
    copies, so none is given back either. `LaneLimits` bound rows as long as the longest, hence the pages.
    """

    def __init__(self, shape: tuple[int, int, int, int], dtype: DTypeLike) -> None:
        self._mapping = _map(shape, np.dtype(dtype))
        self.tensor: NDArray[np.generic] = np.ndarray(shape, dtype, self._mapping)
        self.num_bytes = self.tensor.nbytes

    def fit(self, positions: int, kept: NDArray[np.generic]) -> None:
        """Lays the tensor out for so many positions; all but the first rows is zeros or what other rows left.

        It is never what other memory held: kernels may touch it, and 0 * NaN is NaN.

        Args:
            positions: of each row.
            kept: [rows, H, positions, D], overwritten with what is kept.
        """
        max_rows, num_heads, _, head_dim = self.tensor.shape
        kept[:] = self.tensor[: len(kept), :, : kept.shape[2]]
        shape = max_rows, num_heads, positions, head_dim
        if math.prod(shape) * kept.itemsize > len(self._mapping):
            del self.tensor  # with it the old mapping goes, before the new one is filled
            self._mapping = _map(shape, kept.dtype)
        self.tensor = np.ndarray(shape, kept.dtype, self._mapping)
        self.tensor[: len(kept), :, : kept.shape[2]] = kept
        self.num_bytes = self.tensor.nbytes


def _map(shape: tuple[int, int, int, int], dtype: np.dtype[np.generic]) -> mmap.mmap:
    return mmap.mmap(-1, 2 * math.prod(shape) * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
