"""The keys and values of the sentences of one batch, in rows without gaps and buffers no longer than needed.

Attention kernels pay for a buffer's length, not for what of it is used, so the buffers grow and shrink in buckets of
positions; and the step writes to them in place, so a step with B rows sees the first B rows of each buffer as one
contiguous tensor. An encoded sentence is there once, in a slot that its beams share.

What a row keeps of its own tokens is what the manifest's table of states says: a buffer for each. The states are alike:
growing ones are laid out for the longest row, windows up to their bound, and fixed ones once.
"""

import math
import mmap
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from server.bundle.states import GROWING, State
from server.network import RowMoves
from server.runtime.sizes import fits, round_up
from server.runtime.slots import SlotTable

BUCKET = 16  # positions: what is moved on growth and what is wasted stay both small


class KVCache:
    """States [max_rows, parts, positions, width], and cross-attention caches [max_rows, H, positions, D].

    Args:
        states: the manifest's table; all are alike.
        num_layers: of the decoder, each of which has a key and a value tensor of cross-attention.
        num_heads, head_dim: of cross-attention.
        max_rows: that may be in use at once.
        dtype: of the variant's caches.

    Attributes:
        slots: which rows share which slot.
        layout: raised whenever tensors are replaced, so that whoever holds their addresses binds them again.
    """

    def __init__(
        self,
        *,
        states: Sequence[State],
        num_layers: int,
        num_heads: int,
        head_dim: int,
        max_rows: int,
        dtype: DTypeLike,
    ) -> None:
        shape, name = (max_rows, num_heads, BUCKET, head_dim), np.dtype(dtype).name
        self._state_buffers = [_Buffer(state.tensor_shape(max_rows, BUCKET), state.dtype_in(name)) for state in states]
        self._states = states
        self._cross_buffers = [_Buffer(shape, dtype) for _ in range(2 * num_layers)]
        self.slots = SlotTable()
        self.layout = 0

    @property
    def states(self) -> list[NDArray[np.generic]]:
        """A tensor by row for each state, in the order of the table.

        The next `reserve` may replace them, so a caller must not keep them.
        """
        return [buffer.tensor for buffer in self._state_buffers]

    @property
    def cross_attention(self) -> list[NDArray[np.generic]]:
        """2 * layers tensors by slot, keys at even and values at odd indices; as short-lived as `states`."""
        return [buffer.tensor for buffer in self._cross_buffers]

    @property
    def size_bytes(self) -> int:
        """Bytes of all buffers. Another thread may ask, such as that of the metrics."""
        return sum(buffer.num_bytes for buffer in (*self._state_buffers, *self._cross_buffers))

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """Makes room for so many positions, and not for far more. Only the first `num_rows` rows stay."""
        to, from_ = self.slots.tidy(num_rows)
        if to:
            for tensor in self.cross_attention:
                tensor[to] = tensor[from_]
        if self._states and self._states[0].grows:
            needed = self._states[0].num_positions(round_up(self_positions, BUCKET))
            self._fit(self._state_buffers, num_rows, needed)
        self._fit(self._cross_buffers, len(self.slots), round_up(cross_positions, BUCKET))

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
        """Copies rows, of growing states no more than the given positions, of others all; `reserve` has to follow."""
        tensors, is_partial = self.states, bool(self._states) and self._states[0].kind == GROWING
        for to, from_, common in zip(moves.to, moves.from_, moves.common, strict=True):
            copied = slice(common, positions) if is_partial else slice(None)
            for tensor in tensors:
                tensor[to, :, copied] = tensor[from_, :, copied]
            self.slots.share(to, from_)

    def _fit(self, buffers: list["_Buffer"], num_rows: int, needed: int) -> None:
        capacity = buffers[0].tensor.shape[2]
        if not fits(needed, capacity):
            _, num_heads, _, head_dim = buffers[0].tensor.shape
            kept = np.empty((num_rows, num_heads, min(needed, capacity), head_dim), buffers[0].tensor.dtype)
            try:
                for buffer in buffers:
                    buffer.fit(needed, kept)
            except OSError:
                for buffer in buffers:  # as long as each other again, for which their mappings are enough
                    buffer.fit(capacity, kept)
                raise
            finally:
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
            self._mapping = _map(shape, kept.dtype)  # if it fails, nothing has changed
        self.tensor = np.ndarray(shape, kept.dtype, self._mapping)  # the old mapping goes before the new one is filled
        self.tensor[: len(kept), :, : kept.shape[2]] = kept
        self.num_bytes = self.tensor.nbytes


def _map(shape: tuple[int, int, int, int], dtype: np.dtype[np.generic]) -> mmap.mmap:
    return mmap.mmap(-1, 2 * math.prod(shape) * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
