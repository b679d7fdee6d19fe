"""Test doubles, each with what it fakes: a clock that a test moves, and a network whose tokens a test can predict."""

import threading

import numpy as np
from numpy.typing import NDArray

from server.kv_cache import KVCache

EOS = 3
FIRST_TOKEN = 10


class FakeClock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class CountingRunner:
    """Fakes the network: a source [n, ..., eos] is translated to n tokens 10, 11, 12, ..., whatever its neighbours.

    n travels through the cross-attention cache, so a row that lost its cache gives a wrong length. The failures given
    are raised by the next calls; a step waits while `may_step` is clear.
    """

    def __init__(self) -> None:
        self.encode_failures: list[Exception] = []
        self.step_failures: list[Exception] = []
        self.num_steps = 0
        self.stepped = threading.Event()
        self.may_step = threading.Event()
        self.may_step.set()

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> list[NDArray[np.generic]]:
        if self.encode_failures:
            raise self.encode_failures.pop()
        rows, width = source_ids.shape
        counts = np.broadcast_to(source_ids[:, 0, None, None, None], (rows, 1, width, 8)).astype(np.float32)
        return [counts, counts]

    def open_decoder(self, max_rows: int) -> "CountingDecoder":
        return CountingDecoder(self, max_rows)


class CountingDecoder:
    """The decoder of a `CountingRunner`."""

    def __init__(self, runner: CountingRunner, max_rows: int) -> None:
        self._runner = runner
        self.cache = KVCache(num_layers=1, num_heads=1, head_dim=8, max_rows=max_rows, dtype=np.float32)

    def step(
        self,
        input_ids: NDArray[np.int64],
        past_lengths: NDArray[np.int32],
        source_lengths: NDArray[np.int32],
        top_k: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        self._runner.may_step.wait()
        if self._runner.step_failures:
            raise self._runner.step_failures.pop()
        self._runner.num_steps += 1
        counts = self.cache.cross_attention[0, : len(input_ids), 0, 0, 0].astype(np.int64)
        best = np.where(past_lengths >= counts, EOS, FIRST_TOKEN + past_lengths)
        ids = np.stack([best, *(np.full_like(best, 100 + k) for k in range(1, top_k))], axis=1)
        log_probs = np.tile(
            np.array([-0.125 if k == 0 else -10.0 - k for k in range(top_k)], np.float32), (len(best), 1)
        )
        self._runner.stepped.set()
        return ids, log_probs
