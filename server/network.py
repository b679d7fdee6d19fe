"""The decoder's contract: what a lane asks of it, and what one step of the graph takes besides caches."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from server.engine.scheduler import RowMoves

CONTROL_NAMES = ("input_ids", "past_lengths", "source_lengths", "self_total", "source_total", "top_k", "with_log_probs")
SLOT_NAMES = ("slot_rows", "row_places")  # the same of steps whose rows share slots: see `server.runtime.slots`

# Cross-attention keys and values of encoded sentences, per layer two tensors [B, H, S, D], in whatever memory the
# decoder of the same runner has its own.
Encoded = Sequence[Any]


@dataclass(frozen=True, slots=True)
class StepInputs:
    """What a lane feeds to one step.

    Attributes:
        input_ids: int64 [B], the last token of each row (bos at first).
        past_lengths: int32 [B], positions of the self-attention cache that are filled; the step fills one more.
        source_lengths: int32 [B], at least 1.
        top_k: how many best tokens to return, at least 1.
        with_log_probs: False spares the softmax.
        use_shortlist: all rows have been given candidates, and choose among them.
        is_alone: no other lane is at work, so that the step may use its cores.
    """

    input_ids: NDArray[np.int64]
    past_lengths: NDArray[np.int32]
    source_lengths: NDArray[np.int32]
    top_k: int
    with_log_probs: bool = field(default=True, kw_only=True)
    use_shortlist: bool = field(default=False, kw_only=True)
    is_alone: bool = field(default=False, kw_only=True)


class Decoder(Protocol):
    """One lane's decoder: a cache and the step that reads and writes it. Used by one thread."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of the cache's buffers."""

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """Makes room for so many positions; the first `num_rows` rows stay as they are, the others are free.

        Between two steps it follows `move` and precedes `admit`.
        """

    def admit(self, rows: list[int], encoded: Encoded, source_lengths: NDArray[np.int32]) -> None:
        """Fills free rows, for which there is room, with encoded sentences: rows[i] with the i-th one."""

    def admit_candidates(self, first_row: int, sources: list[tuple[int, ...]]) -> None:
        """Gives rows that `admit` has filled last, the ones from `first_row` on, the shortlists of their sentences."""

    def move(self, moves: RowMoves, positions: int) -> None:
        """Copies rows with their candidates; of self-attention that many positions are filled at most."""

    def step(self, inputs: StepInputs) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Feeds one token to each of the first B rows of the cache.

        Returns:
            The best tokens [B, k], best first, and their log-probabilities [B, k], or else their logits; k is `top_k`,
            or the vocabulary if that is smaller. Both arrays are overwritten by the next step.
        """


def step_controls(
    input_ids: NDArray[np.int64],
    past_lengths: NDArray[np.int32],
    source_lengths: NDArray[np.int32],
    top_k: int = 1,
    with_log_probs: bool = False,
    slot_rows: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[np.generic]]:
    """Returns a step's inputs that are not caches, `CONTROL_NAMES` and perhaps `SLOT_NAMES`, in arrays of their own.

    All but `slot_rows` are what `StepInputs` says; these are `SlotTable.rows`, or None if each row has its own slot.
    """
    controls: dict[str, NDArray[np.generic]] = {
        "input_ids": input_ids.copy(),
        "past_lengths": past_lengths.copy(),
        "source_lengths": source_lengths.copy(),
        "self_total": past_lengths.max(keepdims=True) + np.int32(1),
        "source_total": source_lengths.max(keepdims=True),
        "top_k": np.array([top_k], np.int64),
        "with_log_probs": np.array([with_log_probs]),
    }
    if slot_rows is not None:
        row_places = np.empty(len(input_ids), np.int64)
        row_places[slot_rows.ravel()] = np.arange(slot_rows.size)
        controls["source_lengths"] = source_lengths[slot_rows[:, 0]]
        controls |= {"slot_rows": slot_rows.copy(), "row_places": row_places}
    return controls
