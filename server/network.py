"""What an engine asks of a network: a runner that encodes, and a decoder for each batch.

Neither knows how: `server.runtime` has it on ONNX Runtime, `tests.fakes` by counting.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# Cross-attention keys and values of encoded sentences, per layer two tensors [B, H, S, D], in whatever memory the
# decoder of the same runner has its own.
Encoded = Sequence[Any]


class OutOfMemory(Exception):
    """There was no memory for this call; a smaller one may succeed."""


class DeviceLost(Exception):
    """The device has failed for good: until a new process takes it over, nothing it computes can be trusted."""


class StepKind(enum.Enum):
    """What only sentences of the same kind can share: a step, hence a batch."""

    PLAIN = "plain"  # chooses among the whole vocabulary
    SHORTLIST = "shortlist"  # chooses among each sentence's candidates


@dataclass(frozen=True, slots=True)
class StepInputs:
    """What is fed to one step.

    Attributes:
        input_ids: int64 [B], the last token of each row (bos at first).
        past_lengths: int32 [B], positions of the self-attention cache that are filled; the step fills one more.
        source_lengths: int32 [B], at least 1.
        top_k: how many best tokens to return, at least 1.
        with_log_probs: False spares the softmax.
        is_alone: no other lane has anything to do, so that the step may use its core.
    """

    input_ids: NDArray[np.int64]
    past_lengths: NDArray[np.int32]
    source_lengths: NDArray[np.int32]
    top_k: int
    with_log_probs: bool = field(default=True, kw_only=True)
    is_alone: bool = field(default=False, kw_only=True)


@dataclass(slots=True)
class RowMoves:
    """Row copies to make before the next step: to[i] becomes a copy of from_[i]; no row is on both sides.

    `common[i]`: positions of the self-attention cache that are the same in both rows already, since they were beams of
    the same sentence; 0 if the target row held another one, so that what depends on the source is to be copied too.
    """

    to: list[int] = field(default_factory=list)
    from_: list[int] = field(default_factory=list)
    common: list[int] = field(default_factory=list)

    def add(self, to: int, from_: int, common: int) -> None:
        """Appends one copy."""
        self.to.append(to)
        self.from_.append(from_)
        self.common.append(common)


class Decoder(Protocol):
    """One batch's decoder: a cache and the step that reads and writes it. Used by one thread."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of the cache's buffers."""

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """Makes room for so many positions; the first `num_rows` rows stay as they are, the others are free.

        Between two steps it follows `move` and precedes `admit`.
        """

    def admit(self, first_row: int, encoded: Encoded, sources: Sequence[tuple[int, ...]]) -> None:
        """Fills free rows, for which there is room, with encoded sentences: `first_row` + i with sources[i]."""

    def move(self, moves: RowMoves, positions: int) -> None:
        """Copies rows; of self-attention that many positions are filled at most."""

    def padded_rows(self, num_rows: int) -> int:
        """Returns how many rows a step of so many computes: fewer rows are worth a move only if these are fewer."""

    def step(self, inputs: StepInputs) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Feeds one token to each of the first B rows of the cache; may be called again with the same if it failed.

        Returns:
            The best tokens [B, k], best first, and their log-probabilities [B, k], or else their logits; k is `top_k`,
            or the vocabulary if that is smaller. Both arrays are overwritten by the next step.
        """

    def logits(self) -> NDArray[np.float32]:
        """Returns the logits of the last step, [B, V]; the caller may change them, and the next step does.

        The step must have been a plain one, and nothing may have moved since. A token that the network cannot write has
        minus infinity.
        """

    @property
    def keeps_sources(self) -> bool:
        """Whether what `keep` returns holds when rows have moved; else it must be used before."""

    def keep(self, row: int, source_length: int) -> Any:
        """Returns what `align` needs of a sentence, of which this row was one in the last step."""

    def align(
        self, sources: Sequence[Any], target_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """Returns what finished translations have attended to; a bundle that says nothing of alignment cannot.

        Args:
            sources: [B], what `keep` has returned of the sentence of each.
            target_ids: int64 [B, T], bos and the translation, padded with any ids.
            source_lengths: int32 [B].

        Returns:
            [B, T - 1, S]: for each token of the translation, a distribution over the source's tokens.
        """


class Runner(Protocol):
    """Runs the network of one bundle; may be called from several threads.

    It and its decoders may raise anything; two failures that can be acted upon are `OutOfMemory` and `DeviceLost`.

    Attributes:
        entry_interval: steps of a batch between two entries of sentences, at least 1; more than 1 where encoding and
            filling rows takes as long for a few as for many.
    """

    entry_interval: int

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> Encoded:
        """Encodes padded sentences [B, S], for `Decoder.admit`."""

    def open_decoder(self, kind: StepKind, max_rows: int) -> Decoder:
        """Returns a decoder for steps of a kind, with an empty cache of `max_rows` rows."""
