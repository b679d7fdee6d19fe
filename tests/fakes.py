"""Test doubles, each with what it fakes: a clock that a test moves, and a network whose tokens a test can predict."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from server.bundle.states import attention_states
from server.engine.limits import EngineLimits, LaneLimits
from server.network import Encoded, RowMoves, StepInputs, StepKind
from server.runtime.kv_cache import KVCache

Spoil = Callable[[int, NDArray[np.int64], NDArray[np.float32]], None]
EOS = 3
FIRST_TOKEN = 10


def lane_limits(max_rows: int = 8, max_cached_positions: int = 10**6, max_encode_tokens: int = 1000) -> LaneLimits:
    """Limits that only matter where a test sets them."""
    return LaneLimits(
        max_rows=max_rows,
        max_cached_positions=max_cached_positions,
        max_encode_tokens=max_encode_tokens,
        alone_share=0.75,
    )


def engine_limits(num_lanes: int = 1, max_rows: int = 8, max_waiting_sentences: int = 100) -> EngineLimits:
    """Limits of an engine, likewise."""
    return EngineLimits(
        num_lanes=num_lanes,
        lane=lane_limits(max_rows),
        max_waiting_tokens=10_000,
        max_waiting_sentences=max_waiting_sentences,
    )


class FakeClock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class CachedDecoder:
    """What decoders over host caches have in common: see `server.network.Decoder`.

    Args:
        max_rows: that the caches are for.
        head_dim: numbers of a position, of which there are one layer's and one head's.

    Attributes:
        returned: by the last step.
    """

    def __init__(self, max_rows: int, head_dim: int) -> None:
        self.returned = np.zeros((0, 0), np.int64), np.zeros((0, 0), np.float32)
        states = attention_states(1, 1, head_dim)
        self.cache = KVCache(
            states=states, num_layers=1, num_heads=1, head_dim=head_dim, max_rows=max_rows, dtype=np.float32
        )

    @property
    def cache_bytes(self) -> int:
        """See `Decoder.cache_bytes`."""
        return self.cache.size_bytes

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """See `Decoder.reserve`."""
        self.cache.reserve(num_rows, self_positions, cross_positions)

    def admit(self, first_row: int, encoded: Encoded, sources: Sequence[tuple[int, ...]]) -> None:
        """See `Decoder.admit`."""
        for index, source_ids in enumerate(sources):
            self.cache.admit(first_row + index, encoded, index, len(source_ids))

    def move(self, moves: RowMoves, positions: int) -> None:
        """See `Decoder.move`."""
        self.cache.move(moves, positions)

    def padded_rows(self, num_rows: int) -> int:
        """See `Decoder.padded_rows`."""
        return num_rows

    def logits(self) -> NDArray[np.float32]:
        """See `Decoder.logits`: an eighth of the token's number below -20, but of the tokens that were returned."""
        others = -20 - np.arange(32768, dtype=np.float32) / 8
        logits: NDArray[np.float32] = np.tile(others, (self.cache.slots.num_rows, 1))
        np.put_along_axis(logits, *self.returned, axis=1)
        return logits

    @property
    def keeps_sources(self) -> bool:
        """See `Decoder.keeps_sources`."""
        return True

    def keep(self, row: int, source_length: int) -> int:
        """See `Decoder.keep`; returns the row's slot."""
        return int(self.cache.slots.slots_of([row])[0])

    def align(
        self, sources: Sequence[int], target_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """See `Decoder.align`; every token attends to the source's token with the number of its row's slot."""
        attention = np.zeros((len(sources), target_ids.shape[1] - 1, source_lengths.max()), np.float32)
        for sentence, slot in zip(attention, sources, strict=True):
            sentence[:, slot % attention.shape[2]] = 1.0
        return attention


class CountingRunner:
    """Fakes the network: a source [n, ..., eos] is translated to n tokens 10, 11, 12, ..., whatever its neighbours.

    n travels through the cross-attention cache, so a row that lost its cache gives a wrong length. The failures given
    are raised by the next calls; a step waits while `may_step` is clear. `had_log_probs`, `was_alone`, `kinds` and
    `fed` note what each step was asked for and fed, `admitted` which rows of which kind were filled.

    `entry_interval` is the runner's, and a step computes rows by the `padding`: with 4, the next multiple of 4.

    `spoil` gets the number of the decoder, in the order in which they were opened, and what each of its steps is about
    to return: it may change that, raise or hang.
    """

    def __init__(self) -> None:
        self.encode_failures: list[Exception] = []
        self.step_failures: list[BaseException] = []
        self.spoil: Spoil = lambda decoder, ids, log_probs: None
        self.num_decoders = 0
        self.entry_interval = self.padding = 1
        self.had_log_probs: list[bool] = []
        self.was_alone: list[bool] = []
        self.fed: list[list[int]] = []
        self.kinds: list[StepKind] = []
        self.admitted: list[tuple[StepKind, int]] = []
        self.stepped = threading.Event()
        self.may_step = threading.Event()
        self.may_step.set()

    @property
    def num_steps(self) -> int:
        return len(self.was_alone)

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> Encoded:
        if self.encode_failures:
            raise self.encode_failures.pop()
        rows, width = source_ids.shape
        counts = np.broadcast_to(source_ids[:, 0, None, None, None], (rows, 1, width, 8)).astype(np.float32)
        return [counts, counts]

    def open_decoder(self, kind: StepKind, max_rows: int) -> "CountingDecoder":
        self.num_decoders += 1
        return CountingDecoder(self, kind, max_rows, number=self.num_decoders - 1)


class CountingDecoder(CachedDecoder):
    """The decoder of a `CountingRunner`. Each token has log-probability -0.125, or else logit 5.

    What a step returned is overwritten by the next one, as the real decoder may do.
    """

    def __init__(self, runner: CountingRunner, kind: StepKind, max_rows: int, number: int) -> None:
        super().__init__(max_rows, head_dim=8)
        self._runner = runner
        self._number = number
        self._kind = kind

    def padded_rows(self, num_rows: int) -> int:
        return -(-num_rows // self._runner.padding) * self._runner.padding

    def step(self, inputs: StepInputs) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        self._runner.may_step.wait()
        if self._runner.step_failures:
            raise self._runner.step_failures.pop()
        self._runner.had_log_probs.append(inputs.with_log_probs)
        self._runner.was_alone.append(inputs.is_alone)
        self._runner.kinds.append(self._kind)
        self._runner.fed.append(inputs.input_ids.tolist())
        for stale in self.returned:
            stale[:] = -1
        assert self.cache.slots.num_rows == len(inputs.input_ids)
        counts = np.zeros(len(inputs.input_ids), np.int64)
        counts[self.cache.slots.rows] = self.cache.cross_attention[0][: len(self.cache.slots), 0, 0, :1]
        best = np.where(inputs.past_lengths >= counts, EOS, FIRST_TOKEN + inputs.past_lengths)
        ids = np.stack([best, *(np.full_like(best, 100 + k) for k in range(1, inputs.top_k))], axis=1)
        values = [-0.125 if inputs.with_log_probs else 5.0, *(-10.0 - k for k in range(1, inputs.top_k))]
        self.returned = ids, np.tile(np.array(values, np.float32), (len(best), 1))
        self._runner.spoil(self._number, *self.returned)
        self._runner.stepped.set()
        return self.returned

    def admit(self, first_row: int, encoded: Encoded, sources: Sequence[tuple[int, ...]]) -> None:
        super().admit(first_row, encoded, sources)
        self._runner.admitted += [(self._kind, first_row + index) for index in range(len(sources))]
