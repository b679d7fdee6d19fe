"""What the sentences of a batch take, and the limits of it."""

import math
from dataclasses import dataclass, replace
from typing import Self

from server.bundle.graphs import SLOT_ROWS

_MOST_PADDED = 2  # times the counted positions, at most, if one sentence is much longer than the others


@dataclass(frozen=True, slots=True)
class Footprint:
    """What sentences take of a batch.

    Attributes:
        rows: of the batch, one for each beam.
        cache_rows: rows of the self-attention cache, and slots of the cross-attention cache.
        positions: in these rows and slots, if a translation is as long as its source.
    """

    rows: int = 0
    cache_rows: int = 0
    positions: int = 0

    @classmethod
    def of(cls, num_rows: int, source_tokens: int) -> Self:
        """Returns what one sentence takes with all of its beams."""
        cache_rows = num_rows + math.ceil(num_rows / SLOT_ROWS)
        return cls(num_rows, cache_rows, cache_rows * source_tokens)

    def __add__(self, other: "Footprint") -> "Footprint":
        return Footprint(self.rows + other.rows, self.cache_rows + other.cache_rows, self.positions + other.positions)

    def __sub__(self, other: "Footprint") -> "Footprint":
        return Footprint(self.rows - other.rows, self.cache_rows - other.cache_rows, self.positions - other.positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLimits:
    """What one lane runs at once. A single sentence may always run.

    Attributes:
        max_rows: beams of all sentences.
        max_cached_positions: of the self- and cross-attention caches of all rows, if a translation is as long as its
            source. Counted with every row as long as the longest, `_MOST_PADDED` times as many are allowed.
        max_encode_tokens: of one encoder run: its sentences times the source tokens of the longest one. This bounds how
            long the running rows wait for it.
        idle_seconds: without a sentence, after which a lane gives back its caches.
        alone_share: part of the rows and the caches, over 0 to 1, that the background takes while there is no
            foreground.
    """

    max_rows: int
    max_cached_positions: int
    max_encode_tokens: int
    idle_seconds: float = math.inf
    alone_share: float = 1.0

    def beside(self, footprint: Footprint, share: float = 1.0) -> Self:
        """Returns the limits less a footprint, but no more than this share, over 0 to 1, of the rows and the caches."""
        rows, positions = self.max_rows, self.max_cached_positions
        return replace(
            self,
            max_rows=min(rows - footprint.rows, math.ceil(rows * share)),
            max_cached_positions=min(positions - footprint.positions, math.ceil(positions * share)),
        )

    def allow(self, footprint: Footprint, longest: int) -> bool:
        """Returns whether a footprint is within the limits if the longest row has this number of positions."""
        return (
            footprint.rows <= self.max_rows
            and footprint.positions <= self.max_cached_positions
            and footprint.cache_rows * longest <= _MOST_PADDED * self.max_cached_positions
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """What an engine holds.

    Attributes:
        lane: what each lane runs at once, in all of its batches.
        max_waiting_tokens: source tokens with which the queue is full.
        max_waiting_sentences: the same, in sentences.
    """

    num_lanes: int
    lane: LaneLimits
    max_waiting_tokens: int
    max_waiting_sentences: int
