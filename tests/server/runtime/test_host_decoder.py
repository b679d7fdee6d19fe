"""The decoder in host memory over the tiny bundle's graphs."""

import numpy as np
import pytest

from server.bundle.bundle import Bundle
from server.bundle.graphs import PLAIN_STEP
from server.network import RowMoves, StepInputs, StepKind
from server.runtime.runner import HostRunner
from tests.runners import open_host_runner
from tests.server.runtime.conftest import admit, encode_one


@pytest.mark.parametrize(("variant", "dtype"), [("cpu-fp32", "float32"), ("cpu-int8", "int8")])
def test_caches_are_of_the_variants_type(tiny_bundle: Bundle, variant: str, dtype: str) -> None:
    runner = open_host_runner(tiny_bundle, variant)
    cache = runner.open_decoder(StepKind.PLAIN, max_rows=2).cache

    tensors = [*encode_one(runner, 7), *cache.states, *cache.cross_attention]
    assert {tensor.dtype.name for tensor in tensors} == {dtype}


def test_step_takes_another_number_of_candidates_on_the_same_rows(host_runner: HostRunner) -> None:
    """A binding keeps the shape of its first output; greedy alone, then a beam alone, once failed."""
    decoder = host_runner.open_decoder(StepKind.PLAIN, max_rows=2)
    admit(host_runner, decoder, 0, 5)
    past, source = np.zeros(1, np.int32), np.array([5], np.int32)

    ids = [decoder.step(StepInputs(np.array([2]), past, source, top_k))[0] for top_k in (1, 8, 32, 1)]

    assert [chosen.shape for chosen in ids] == [(1, 1), (1, 8), (1, 32), (1, 1)]
    np.testing.assert_array_equal(ids[2][:, :8], ids[1])
    np.testing.assert_array_equal(ids[1][:, :1], ids[0])


def test_step_writes_its_position_of_the_cache_and_no_other(host_runner: HostRunner) -> None:
    decoder = host_runner.open_decoder(StepKind.PLAIN, max_rows=3)
    for row in range(2):
        admit(host_runner, decoder, row, 5)
    past = np.array([0, 4], np.int32)

    decoder.step(StepInputs(np.array([2, 7]), past, np.array([5, 5], np.int32), 1))

    for tensor in decoder.cache.states:
        written = np.abs(tensor.astype(float)).sum(axis=(1, 3)) > 0  # [rows, positions]
        assert np.argwhere(written).tolist() == [[0, 0], [1, 4]]


@pytest.mark.parametrize("has_shared_slots", [False, True])
@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
def test_step_leaves_the_encoded_sentences_as_they_are(
    tiny_bundle: Bundle, variant: str, has_shared_slots: bool
) -> None:
    runner = open_host_runner(tiny_bundle, variant)
    decoder = runner.open_decoder(StepKind.PLAIN, max_rows=3)
    for row, length in enumerate((5, 2, 7)):
        admit(runner, decoder, row, length)
    decoder.move(RowMoves([2], [0], [0]), 1)
    decoder.reserve(2 + has_shared_slots, 5, 5)
    before = [tensor.copy() for tensor in decoder.cache.cross_attention]
    lengths = np.array([5, 2, 5][: 2 + has_shared_slots], np.int32)

    decoder.step(StepInputs(np.full(len(lengths), 7), np.zeros_like(lengths), lengths, 1))

    for tensor, old in zip(decoder.cache.cross_attention, before, strict=True):
        assert old.any()
        np.testing.assert_array_equal(tensor, old)


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
def test_rows_that_share_slots_step_as_with_slots_of_their_own(tiny_bundle: Bundle, variant: str) -> None:
    runner = open_host_runner(tiny_bundle, variant)
    shared, own = (runner.open_decoder(StepKind.PLAIN, max_rows=8) for _ in range(2))
    lengths = [5, 9, 5, 5, 5, 5, 5, 3]  # six beams of one sentence, and others
    for row in (0, 1):
        admit(runner, shared, row, lengths[row])
    for row in range(2, 7):
        shared.move(RowMoves([row], [0], [0]), 1)
    shared.reserve(7, 1, 9)
    admit(runner, shared, 7, lengths[7])
    for row, length in enumerate(lengths):
        admit(runner, own, row, length)
    inputs = StepInputs(np.arange(20, 28), np.zeros(8, np.int32), np.array(lengths, np.int32), 8)

    (ids, log_probs), (own_ids, own_log_probs) = (decoder.step(inputs) for decoder in (shared, own))

    assert shared.cache.slots.rows.tolist() == [[0, 2, 3, 4], [1] * 4, [6, 5, 6, 6], [7] * 4]
    np.testing.assert_array_equal(ids, own_ids)
    np.testing.assert_array_equal(log_probs, own_log_probs)
    assert len({tuple(row) for row in log_probs.tolist()}) > 4  # it is no constant


def test_a_step_of_other_rows_than_those_in_use_is_refused(host_runner: HostRunner) -> None:
    decoder = host_runner.open_decoder(StepKind.PLAIN, max_rows=2)

    with pytest.raises(ValueError, match="a step of 1 rows, but 0 are in use"):
        decoder.step(StepInputs(np.array([2]), np.zeros(1, np.int32), np.ones(1, np.int32), 1))


def test_without_log_probabilities_the_same_tokens_come_with_logits(host_runner: HostRunner) -> None:
    decoder = host_runner.open_decoder(StepKind.PLAIN, max_rows=1)
    admit(host_runner, decoder, 0, 5)

    found = []
    for with_log_probs in (True, False, True):  # over one binding
        ids, values = decoder.step(
            StepInputs(np.array([2]), np.zeros(1, np.int32), np.array([5], np.int32), 32, with_log_probs=with_log_probs)
        )
        found.append((ids.copy(), values.copy()))

    (ids, log_probs), (same_ids, logits), (_, again) = found
    assert 0.5 < np.exp(log_probs).sum() < 1.0  # of 32 tokens of 700
    np.testing.assert_array_equal(same_ids, ids)
    np.testing.assert_allclose(logits - logits[:, :1], log_probs - log_probs[:, :1], atol=1e-5)
    assert np.abs(logits - log_probs).min() > 0.1
    np.testing.assert_array_equal(again, log_probs)


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
def test_a_lane_may_be_alone_at_any_step(tiny_bundle: Bundle, variant: str) -> None:
    """Two sessions write to one cache, each through a binding of its own."""
    runner = open_host_runner(tiny_bundle, variant, num_threads=1, num_threads_alone=2)
    assert runner.sessions.step_session(PLAIN_STEP) is not runner.sessions.step_session(PLAIN_STEP, is_alone=True)

    ids, log_probs = greedy(runner, [False] * 12)
    for turns in ([True] * 12, [True, False] * 6, [False, False, True] * 4):
        other_ids, other_log_probs = greedy(runner, turns)

        assert other_ids == ids
        np.testing.assert_allclose(other_log_probs, log_probs, atol=1e-5)


def greedy(runner: HostRunner, turns: list[bool]) -> tuple[list[list[int]], list[list[float]]]:
    """Translates two sentences, row 1 alone at first; `turns` says at which steps the lane is alone.

    The cache gets longer on the way, and the rows and candidates change.
    """
    decoder = runner.open_decoder(StepKind.PLAIN, max_rows=4)
    admit(runner, decoder, 0, 9)
    admit(runner, decoder, 1, 5)
    found: list[list[int]] = [[2, 2]]
    values: list[list[float]] = []
    for position, is_alone in enumerate(turns):
        if position == 5:
            decoder.cache.reserve(2, 40, 20)
        ids, log_probs = decoder.step(
            StepInputs(
                np.array(found[-1]),
                np.full(2, position, np.int32),
                np.array([9, 5], np.int32),
                top_k=1 + position // 4,
                is_alone=is_alone,
            )
        )
        found.append(ids[:, 0].tolist())
        values.append(log_probs[:, 0].tolist())
    assert len({tuple(step) for step in found}) > 6  # it is no constant
    return found, values


@pytest.mark.parametrize("is_alone", [False, True])
def test_only_a_lane_that_is_alone_takes_the_threads_of_others(tiny_bundle: Bundle, is_alone: bool) -> None:
    runner = open_host_runner(tiny_bundle, num_threads_alone=2)
    decoder = runner.open_decoder(StepKind.PLAIN, max_rows=1)
    admit(runner, decoder, 0, 1)

    decoder.step(StepInputs(np.array([2]), np.zeros(1, np.int32), np.ones(1, np.int32), 1, is_alone=is_alone))

    (step,) = decoder._steps.values()
    assert step._session.get_session_options().intra_op_num_threads == (2 if is_alone else 1)


def test_step_follows_the_cache_to_a_new_buffer(host_runner: HostRunner) -> None:
    decoder = host_runner.open_decoder(StepKind.PLAIN, max_rows=1)
    admit(host_runner, decoder, 0, 5)
    source = np.array([5], np.int32)
    first, _ = decoder.step(StepInputs(np.array([2]), np.zeros(1, np.int32), source, 4))
    decoder.cache.reserve(1, 100, 5)

    again, _ = decoder.step(StepInputs(np.array([2]), np.zeros(1, np.int32), source, 4))

    np.testing.assert_array_equal(first, again)
