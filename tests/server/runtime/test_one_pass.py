"""The runner of networks that write all words at once, on the graphs of a real bundle."""

import numpy as np
import pytest

from server.bundle.bundle import Bundle
from server.errors import BundleError
from server.network import RowMoves, StepInputs, StepKind
from server.runtime.one_pass import OnePassDecoder, OnePassRunner
from server.runtime.runner import open_runner
from tests.server.runtime.conftest import with_file

SOURCES = [(20, 21, 22, 3), (30, 3), (40, 41, 42, 43, 44, 3)]


def opened(bundle: Bundle, variant: str = "cpu-fp32", num_threads_alone: int = 1) -> OnePassRunner:
    runner = open_runner(bundle, variant, "cpu", num_threads_alone=num_threads_alone)
    assert isinstance(runner, OnePassRunner)
    return runner


@pytest.fixture(scope="module", params=["cpu-fp32", "cpu-int8"])
def runner(one_pass_bundle: Bundle, request: pytest.FixtureRequest) -> OnePassRunner:
    return opened(one_pass_bundle, request.param)


def stepped(decoder: OnePassDecoder, lengths: list[int], top_k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rows = len(lengths)
    inputs = StepInputs(np.zeros(rows, np.int64), np.zeros(rows, np.int32), np.array(lengths, np.int32), top_k)
    return decoder.step(inputs)


def admitted(runner: OnePassRunner) -> OnePassDecoder:
    decoder = runner.open_decoder(StepKind.PLAIN, 8)
    ids, lengths = np.zeros((3, 6), np.int64), np.array([4, 2, 6], np.int32)
    decoder.admit(0, runner.encode(ids, lengths), SOURCES)
    return decoder


def test_a_step_returns_blanks_and_the_best_of_positions(one_pass_bundle: Bundle, runner: OnePassRunner) -> None:
    ids, log_probs = stepped(admitted(runner), [4, 2, 6])

    assert ids.shape == log_probs.shape == (3, 12, 5)
    assert (ids[:, :, 0] == one_pass_bundle.manifest.special_ids.bos).all()
    for row, source in enumerate(SOURCES):
        own = log_probs[row, : 2 * len(source)]
        assert (np.diff(own[:, 1:], axis=1) <= 0).all()  # best first
        assert (own[:, 0] <= own[:, 1] + 1e-5).all()
        assert (np.exp(own[:, 1:]).sum(axis=1) < 1 + 1e-5).all()


def test_a_row_has_the_same_bits_alone_and_in_a_batch(runner: OnePassRunner) -> None:
    ids, log_probs = stepped(admitted(runner), [4, 2, 6])

    for row, source in enumerate(SOURCES):
        alone = runner.run(np.array([source]), np.array([len(source)], np.int32), 4)
        np.testing.assert_array_equal(ids[row, : 2 * len(source)], alone[0][0])
        np.testing.assert_array_equal(log_probs[row, : 2 * len(source)], alone[1][0])


def test_rows_move_with_their_sources(runner: OnePassRunner) -> None:
    decoder = admitted(runner)
    _, before = stepped(decoder, [4, 2, 6])

    decoder.move(RowMoves([0], [2], [0]), 0)
    _, after = stepped(decoder, [6])

    np.testing.assert_array_equal(after[0], before[2])


def test_no_more_tokens_are_returned_than_there_are(one_pass_bundle: Bundle, runner: OnePassRunner) -> None:
    vocab_size = one_pass_bundle.manifest.dimensions.vocab_size
    ids, _ = runner.run(np.array([SOURCES[0]]), np.array([4], np.int32), 32)

    assert ids.shape[2] == 1 + min(32, vocab_size)


def test_without_log_probabilities_the_best_are_the_same(runner: OnePassRunner) -> None:
    source, lengths = np.array([SOURCES[2]]), np.array([6], np.int32)
    (ids, log_probs), (same, logits) = (
        runner.run(source, lengths, 4, with_log_probs=with_log_probs) for with_log_probs in (True, False)
    )

    np.testing.assert_array_equal(ids, same)
    np.testing.assert_allclose(np.diff(logits[0], axis=1), np.diff(log_probs[0], axis=1), atol=1e-4)


def test_a_lane_alone_has_a_session_of_its_own(one_pass_bundle: Bundle) -> None:
    runner = opened(one_pass_bundle, num_threads_alone=2)
    assert runner._graphs is not None
    source, lengths = np.array([SOURCES[2]]), np.array([6], np.int32)

    alone, beside = (runner.run(source, lengths, 4, is_alone=is_alone) for is_alone in (True, False))

    np.testing.assert_array_equal(alone[0], beside[0])
    assert {threads: each.get_session_options().intra_op_num_threads for threads, each in runner._sessions.items()} == {
        1: 1,
        2: 2,
    }
    assert runner._graphs is None  # with the verified bytes of all files


def test_another_graph_is_refused(one_pass_bundle: Bundle, tiny_bundle: Bundle) -> None:
    encoder = tiny_bundle.read("cpu-fp32/encoder.onnx")

    with pytest.raises(BundleError, match=r"one_pass\.onnx"):
        opened(with_file(one_pass_bundle, "cpu-fp32/one_pass.onnx", encoder))


def test_what_the_network_does_not_have_cannot_be_asked_for(runner: OnePassRunner) -> None:
    decoder = admitted(runner)

    with pytest.raises(TypeError, match="no logits"):
        decoder.logits()
    with pytest.raises(TypeError, match="no aligner"):
        decoder.keep(0, 4)
    with pytest.raises(TypeError, match="no aligner"):
        decoder.align([], np.zeros((0, 1), np.int64), np.zeros(0, np.int32))
