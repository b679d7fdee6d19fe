"""The decoder in device memory; on a CPU's it is all the same but for the capture of graphs."""

import gc
import random

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from server.bundle.bundle import Bundle
from server.network import RowMoves, StepInputs, StepKind
from server.runtime.cuda_device import has_cuda_device
from server.runtime.device_decoder import DeviceDecoder
from server.runtime.runner import DeviceRunner, HostRunner, open_runner

MAX_ROWS = 6  # steps for 1, 2, 4 and 6 rows
BOS = 2

has_cuda = has_cuda_device() and "CUDAExecutionProvider" in onnxruntime.get_available_providers()
on_cuda = pytest.param(
    "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not has_cuda, reason="no CUDA device, or no onnxruntime-gpu")]
)


@pytest.fixture(scope="module", params=["cpu", on_cuda])
def runner(tiny_bundle: Bundle, request: pytest.FixtureRequest) -> DeviceRunner:
    runner = open_runner(tiny_bundle, "cuda-fp16", request.param)
    assert isinstance(runner, DeviceRunner)
    return runner


def device_decoder(runner: DeviceRunner, max_rows: int = MAX_ROWS) -> DeviceDecoder:
    return runner.open_decoder(StepKind.PLAIN, max_rows)


def common_positions(fed: list[int], other: list[int]) -> int:
    pairs = zip(fed, other, strict=True)
    return next((i for i, (token, other_token) in enumerate(pairs) if token != other_token), len(fed))


class Walk:
    """Both decoders side by side, and what lies in each row: a sentence, and the tokens it was fed."""

    def __init__(self, runner: DeviceRunner, host_runner: HostRunner, seed: int) -> None:
        self.runner, self.host_runner = runner, host_runner
        self.decoders = device_decoder(runner), host_runner.open_decoder(StepKind.PLAIN, MAX_ROWS)
        self.random = random.Random(seed)
        self.rows: list[tuple[tuple[int, ...], list[int]]] = []
        self.differences: list[float] = []

    def admit(self, count: int) -> None:
        sentences = [tuple(self.random.choices(range(10, 700), k=self.random.randint(1, 30))) for _ in range(count)]
        lengths = np.array([len(sentence) for sentence in sentences], np.int32)
        source_ids = np.zeros((count, lengths.max()), np.int64)
        for row, sentence in zip(source_ids, sentences, strict=True):
            row[: len(sentence)] = sentence
        first_row = len(self.rows)
        self.reserve(int(lengths.max()))
        on_device, in_host_memory = self.decoders
        on_device.admit(first_row, self.runner.encode(source_ids, lengths), sentences)
        in_host_memory.admit(first_row, self.host_runner.encode(source_ids, lengths), sentences)
        self.rows += [(sentence, []) for sentence in sentences]

    def move(self) -> None:
        """The last row leaves its place to a copy of another's, or a beam doubles, or the last row goes to a gap."""
        last = len(self.rows) - 1
        from_, to = self.random.randint(0, last), self.random.randint(0, min(last + 1, MAX_ROWS - 1))
        if from_ == to:
            return
        common = 0
        if to <= last and self.rows[to][0] is self.rows[from_][0]:
            common = common_positions(self.rows[to][1], self.rows[from_][1])
        copied = self.rows[from_][0], list(self.rows[from_][1])
        self.rows[to : to + 1] = [copied]
        self.reserve(1)
        for decoder in self.decoders:
            decoder.move(RowMoves([to], [from_], [common]), max(len(fed) for _, fed in self.rows))

    def reserve(self, source: int) -> None:
        past = max((len(fed) for _, fed in self.rows), default=0)
        source = max([source, *(len(sentence) for sentence, _ in self.rows)])
        for decoder in self.decoders:
            decoder.reserve(len(self.rows), past + 1, source)

    def step(self) -> None:
        self.reserve(1)
        top_k = self.random.choice([1, 2, 8, 10, 32])
        tokens = np.array([self.random.randint(10, 699) if fed else BOS for _, fed in self.rows])
        past = np.array([len(fed) for _, fed in self.rows], np.int32)
        lengths = np.array([len(sentence) for sentence, _ in self.rows], np.int32)
        (_, found), (_, expected) = (
            decoder.step(StepInputs(tokens, past, lengths, top_k)) for decoder in self.decoders
        )
        assert found.shape == (len(self.rows), top_k)
        self.differences.append(float(np.abs(found - expected).max()))
        for (_, fed), token in zip(self.rows, tokens, strict=True):
            fed.append(int(token))


@pytest.mark.parametrize("seed", range(3))
def test_steps_are_those_of_the_decoder_in_host_memory(
    runner: DeviceRunner, host_runner: HostRunner, seed: int
) -> None:
    walk = Walk(runner, host_runner, seed)
    walk.admit(2)
    for _ in range(60):
        if len(walk.rows) < MAX_ROWS and walk.random.random() < 0.2:
            walk.admit(walk.random.randint(1, MAX_ROWS - len(walk.rows)))
        if walk.random.random() < 0.5:
            walk.move()
        if len(walk.rows) > 1 and walk.random.random() < 0.2:
            walk.rows.pop()
        walk.step()

    # Halves against floats.
    assert max(walk.differences) < 0.1


def test_as_many_best_tokens_as_asked_for(runner: DeviceRunner) -> None:
    decoder = device_decoder(runner)
    decoder.admit(0, *encoded(runner, 5))
    found = [step(decoder, 1, top_k) for top_k in (1, 4, 8, 9, 32, 1)]

    assert [ids.shape for ids, _ in found] == [(1, 1), (1, 4), (1, 8), (1, 9), (1, 32), (1, 1)]
    best = found[4][0][0].tolist()
    assert len(set(best)) == 32
    for ids, log_probs in found:  # halves tie, and kernels for other numbers order ties in other ways
        assert len(set(ids[0].tolist()) & set(best)) == ids.shape[1]
        np.testing.assert_allclose(log_probs, found[4][1][:, : ids.shape[1]], atol=1e-3)


def test_there_is_room_for_what_the_limits_allow(runner: DeviceRunner, tiny_bundle: Bundle) -> None:
    limits = tiny_bundle.manifest.limits
    decoder = device_decoder(runner, max_rows=1)
    decoder.admit(0, *encoded(runner, limits.max_source_tokens))

    for past in range(limits.max_target_tokens):
        _, log_probs = step(decoder, 1, 8, past, limits.max_source_tokens)
        assert np.isfinite(log_probs).all()


def test_encoding_minds_lengths_not_what_pads(runner: DeviceRunner) -> None:
    """Attention kernels for CUDA that know one length for all rows would let a sentence see its padding."""
    alone = runner.encode(np.arange(20, 25)[None], np.array([5], np.int32))
    source_ids = np.full((2, 30), 99)
    source_ids[0, :5] = np.arange(20, 25)

    beside = runner.encode(source_ids, np.array([5, 30], np.int32))

    for one, two in zip(alone, beside, strict=True):
        np.testing.assert_allclose(two.numpy()[:1, :, :5], one.numpy(), atol=0.01)


def test_graph_ids_are_never_used_again(runner: DeviceRunner) -> None:
    """A graph that was captured is replayed for its id, on memory that may be gone."""
    used = [id_ for _ in range(2) for id_ in graph_ids(device_decoder(runner))]

    assert len(set(used)) == len(used) == 2 * 4 * 3


def graph_ids(decoder: DeviceDecoder) -> list[str]:
    step(decoder, 1, 1)
    return [taken._options.get_run_config_entry("gpu_graph_id") for taken in decoder._steps.values()]


def test_encoded_sentences_outlive_their_run(runner: DeviceRunner) -> None:
    first = encoded(runner, 5)
    values = [tensor.numpy().copy() for tensor in first[0]]
    for _ in range(20):
        encoded(runner, 30)
    gc.collect()

    for tensor, value in zip(first[0], values, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), value)


def test_an_encoded_sentence_leaves_other_rows_alone(runner: DeviceRunner) -> None:
    decoder = device_decoder(runner, max_rows=3)
    for row in range(3):
        decoder.admit(row, *encoded(runner, 5 + row))
    before = [cache.numpy().copy() for name, cache in decoder._caches.items() if name.startswith("cross")]

    decoder.admit(1, *encoded(runner, 9))

    after = [cache.numpy() for name, cache in decoder._caches.items() if name.startswith("cross")]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old[[0, 2]], new[[0, 2]])
        assert not np.array_equal(old[1], new[1])
        assert not new[1, :, 9:].any()


def test_bytes_of_the_caches(runner: DeviceRunner, tiny_bundle: Bundle) -> None:
    sizes, limits = tiny_bundle.manifest.dimensions, tiny_bundle.manifest.limits
    positions = limits.max_source_tokens + limits.max_target_tokens

    assert device_decoder(runner).cache_bytes == MAX_ROWS * 2 * sizes.decoder_layers * positions * sizes.d_model * 2


def encoded(runner: DeviceRunner, length: int) -> tuple[list[onnxruntime.OrtValue], list[tuple[int, ...]]]:
    """A sentence as the encoder returns it, and its ids."""
    ids = tuple(range(20, 20 + length))
    return runner.encode(np.array([ids]), np.array([length], np.int32)), [ids]


def step(
    decoder: DeviceDecoder, num_rows: int, top_k: int, past: int = 0, source: int = 5
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    past_lengths, source_lengths = np.full(num_rows, past, np.int32), np.full(num_rows, source, np.int32)
    return decoder.step(StepInputs(np.full(num_rows, BOS), past_lengths, source_lengths, top_k))


def test_the_largest_runs_at_the_start_change_nothing_that_follows(runner: DeviceRunner) -> None:
    runner.take_memory(used := device_decoder(runner), MAX_ROWS)
    sentence, lengths = np.full((1, 5), 11, np.int64), np.full(1, 5, np.int32)
    for decoder in (used, new := device_decoder(runner)):
        decoder.admit(0, runner.encode(sentence, lengths), [(11,) * 5])
    inputs = StepInputs(np.array([BOS]), np.zeros(1, np.int32), lengths, top_k=4)

    for after_runs, at_once in zip(used.step(inputs), new.step(inputs), strict=True):
        np.testing.assert_array_equal(after_runs, at_once)
