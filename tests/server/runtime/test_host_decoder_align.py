"""What finished translations have attended to, by the decoders in host memory and in device memory."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from server.bundle.bundle import Bundle
from server.errors import BundleError
from server.network import Decoder, RowMoves, StepKind
from server.runtime.host_decoder import HostDecoder
from server.runtime.runner import DeviceRunner, HostRunner, open_runner
from tests.server.runtime.test_device_decoder import on_cuda

SOURCES = [(5, 9, 12, 7, 3), (8, 3), (6, 15, 3)]
TARGETS = [[2, 10, 11, 4], [2, 14, 15, 16, 7, 6], [2, 17]]
LENGTHS = np.array([len(source) for source in SOURCES], np.int32)


@pytest.fixture(scope="module", params=["cpu", on_cuda])
def device_runner(tiny_bundle: Bundle, request: pytest.FixtureRequest) -> DeviceRunner:
    runner = open_runner(tiny_bundle, "cuda-fp16", request.param)
    assert isinstance(runner, DeviceRunner)
    return runner


def padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, given in zip(ids, rows, strict=True):
        row[: len(given)] = given
    return ids


def opened(runner: HostRunner | DeviceRunner, sources: Sequence[tuple[int, ...]] = SOURCES) -> Decoder:
    decoder: Decoder = runner.open_decoder(StepKind.PLAIN, 8)
    lengths = np.array([len(source) for source in sources], np.int32)
    decoder.reserve(len(sources), 1, int(lengths.max()))
    decoder.admit(0, runner.encode(padded(sources), lengths), sources)
    return decoder


def align(decoder: Decoder, rows: Sequence[int], numbers: Sequence[int]) -> NDArray[np.float32]:
    """Aligns the sentences of these rows, which are those of these numbers."""
    lengths = LENGTHS[list(numbers)]
    kept = [decoder.keep(row, length) for row, length in zip(rows, lengths.tolist(), strict=True)]
    return decoder.align(kept, padded([TARGETS[number] for number in numbers]), lengths)


def test_each_token_has_a_distribution_over_its_source(host_runner: HostRunner) -> None:
    attention = align(opened(host_runner), [0, 1, 2], [0, 1, 2])

    assert attention.shape == (3, 5, 5)
    for weights, target, length in zip(attention, TARGETS, LENGTHS, strict=True):
        np.testing.assert_allclose(weights[: len(target) - 1, :length].sum(axis=1), 1.0, atol=1e-5)
        assert weights[: len(target) - 1, length:].max(initial=0.0) < 1e-20


def test_it_is_the_same_alone(host_runner: HostRunner) -> None:
    together = align(opened(host_runner), [0, 1, 2], [0, 1, 2])

    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        (alone,) = align(opened(host_runner, [source]), [0], [row])
        np.testing.assert_allclose(together[row, : len(target) - 1, : len(source)], alone, atol=1e-5)


def test_rows_of_a_beam_are_of_one_sentence(host_runner: HostRunner) -> None:
    decoder = opened(host_runner)
    expected = align(decoder, [1], [1])
    decoder.move(RowMoves([3, 4], [1, 1], [0, 0]), 1)
    decoder.reserve(5, 1, int(LENGTHS.max()))

    for row in (1, 3, 4):
        np.testing.assert_allclose(align(decoder, [row], [1]), expected, atol=1e-6)


def test_what_is_kept_holds_when_other_sentences_have_the_rows(host_runner: HostRunner) -> None:
    expected = align(opened(host_runner), [0, 1, 2], [0, 1, 2])
    decoder = opened(host_runner)
    assert decoder.keeps_sources
    kept = [decoder.keep(row, length) for row, length in enumerate(LENGTHS.tolist())]
    decoder.reserve(0, 1, 20)
    others = [(9, 8, 7, 6, 3)] * 3
    decoder.admit(0, host_runner.encode(padded(others), np.full(3, 5, np.int32)), others)

    np.testing.assert_allclose(decoder.align(kept, padded(TARGETS), LENGTHS), expected, atol=1e-6)


def test_in_device_memory_it_is_about_the_same(host_runner: HostRunner, device_runner: DeviceRunner) -> None:
    expected = align(opened(host_runner), [0, 1, 2], [0, 1, 2])

    found = align(opened(device_runner), [0, 1, 2], [0, 1, 2])

    for row, target in enumerate(TARGETS):
        np.testing.assert_allclose(found[row, : len(target) - 1], expected[row, : len(target) - 1], atol=0.02)


def test_a_graph_of_another_model_is_refused(tiny_bundle: Bundle) -> None:
    alignment = tiny_bundle.manifest.alignment
    assert alignment is not None
    first = dataclasses.replace(alignment, heads=(dataclasses.replace(alignment.heads[0], layer=0),))
    runner = open_runner(
        dataclasses.replace(tiny_bundle, manifest=dataclasses.replace(tiny_bundle.manifest, alignment=first)),
        "cpu-fp32",
        "cpu",
    )
    decoder = runner.open_decoder(StepKind.PLAIN, 1)
    assert isinstance(decoder, HostDecoder)
    decoder.reserve(1, 1, 2)
    decoder.admit(0, runner.encode(padded(SOURCES[1:2]), LENGTHS[1:2]), SOURCES[1:2])

    with pytest.raises(BundleError, match="unknown input cross_"):
        align(decoder, [0], [1])
