"""What the sentences of a batch take, and how much they may."""

import math
from dataclasses import dataclass, replace
from typing import Self

from server.bundle.graphs import SLOT_ROWS

_MOST_PADDED = 4  # times the cached positions that are counted, by one sentence much longer than the others


@dataclass(frozen=True, slots=True)
class Footprint:
    """What sentences take of a batch.

    Attributes:
        rows: of the batch.
        cache_rows: rows of the self-attention cache, and slots of the cross-attention cache.
        positions: of these, if a translation is as long as its source.
    """

    rows: int = 0
    cache_rows: int = 0
    positions: int = 0

    @classmethod
    def of(cls, beam_size: int, source_tokens: int) -> Self:
        """Returns what one sentence takes when its beam has grown."""
        cache_rows = beam_size + math.ceil(beam_size / SLOT_ROWS)
        return cls(beam_size, cache_rows, cache_rows * source_tokens)

    def __add__(self, other: "Footprint") -> "Footprint":
        return Footprint(self.rows + other.rows, self.cache_rows + other.cache_rows, self.positions + other.positions)

    def __sub__(self, other: "Footprint") -> "Footprint":
        return Footprint(self.rows - other.rows, self.cache_rows - other.cache_rows, self.positions - other.positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLimits:
    """What one lane runs at once; a single sentence passes whatever it takes.

    Attributes:
        max_rows: beams of all its sentences.
        max_cached_positions: of the self- and cross-attention caches of all rows; a translation is taken to be as long
            as its source. With all rows as long as the longest, `_MOST_PADDED` times as many.
        max_encode_tokens: sentences x source tokens of the longest one in an encoder run, which bounds how long the
            running rows stall.
        idle_seconds: without a sentence, after which a lane gives back its caches.
    """

    max_rows: int
    max_cached_positions: int
    max_encode_tokens: int
    idle_seconds: float = math.inf

    def part(self, share: float) -> Self:
        """Returns limits of so much of the rows and the caches, over 0 to 1."""
        positions = math.ceil(self.max_cached_positions * share)
        return replace(self, max_rows=math.ceil(self.max_rows * share), max_cached_positions=positions)

    def beside(self, footprint: Footprint) -> Self:
        """Returns limits of what a footprint leaves of the rows and the caches."""
        positions = self.max_cached_positions - footprint.positions
        return replace(self, max_rows=self.max_rows - footprint.rows, max_cached_positions=positions)

    def allow(self, footprint: Footprint, longest: int) -> bool:
        """Whether a lane may hold as much when its longest row has so many positions."""
        return (
            footprint.rows <= self.max_rows
            and footprint.positions <= self.max_cached_positions
            and footprint.cache_rows * longest <= _MOST_PADDED * self.max_cached_positions
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """What an engine holds.

    Attributes:
        num_lanes: threads.
        lane: what each of them runs at once, with all of its batches.
        max_waiting_tokens: source tokens at which the queue refuses further requests.
        max_waiting_sentences: sentences at which it does.
    """

    num_lanes: int
    lane: LaneLimits
    max_waiting_tokens: int
    max_waiting_sentences: int
