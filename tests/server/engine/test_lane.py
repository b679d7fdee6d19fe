"""A lane over a fake network, stepped by hand but where its thread is what is tested."""

import threading
from typing import Any

import pytest

from server.engine.lane import MAX_FAILURES, MAX_STEP_SECONDS, Lane
from server.errors import EngineFailed, NotServing
from server.network import StepKind
from tests.server.engine.parts import GREEDY, SHORTLIST, Parts, Stepped, decoder_of, tokens

SECONDS = 20  # far above what any of these needs; a hang fails


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def lane(parts: Parts) -> Lane:
    return parts.open_lane()


def step(lane: Lane, times: int = 1) -> None:
    for _ in range(times):
        lane.step()


def test_a_lane_is_alone_while_no_other_has_anything_to_do() -> None:
    parts = Parts(num_lanes=2)
    lane, other = parts.open_lane(), parts.open_lane()
    parts.submit(5)
    lane.step()
    parts.submit(1)
    lane.step()  # the second sentence waits for the other lane
    other.step()
    lane.step()
    other.step()  # the second sentence leaves
    lane.step()

    assert parts.runner.was_alone == [True, False, False, False, False, True]


def test_sentences_of_different_kinds_run_side_by_side_and_never_share_a_step(parts: Parts, lane: Lane) -> None:
    futures = [
        future for options in (GREEDY, SHORTLIST, GREEDY, SHORTLIST) for future in parts.submit(3, options=options)
    ]
    step(lane, 4)

    assert all(future.result(0).hypotheses[0].ids == tokens(3) for future in futures)
    assert parts.runner.admitted == [(kind, row) for kind in StepKind for row in (0, 1)]  # two rows of a batch each
    assert parts.runner.kinds == [*StepKind] * 4


def test_a_lane_alone_with_both_kinds_waiting_does_not_run_empty(parts: Parts, lane: Lane) -> None:
    for i in range(100):
        parts.submit(2 + i % 5, options=SHORTLIST if i % 2 else GREEDY)

    num_steps = 0
    while parts.queue.num_sentences:
        lane.step()
        num_steps += 1

    assert parts.sample("batch_rows_sum") / num_steps > 7.5  # of 8 at every turn


def test_batches_of_a_lane_share_its_rows(parts: Parts, lane: Lane) -> None:
    parts.submit(*[3] * 5)
    parts.submit(*[3] * 5, options=SHORTLIST)

    lane.step()

    assert lane.num_rows == 8
    assert parts.queue.num_sentences == 2


def test_sentences_of_one_kind_share_their_steps(parts: Parts, lane: Lane) -> None:
    parts.submit(3, 3, options=SHORTLIST)
    parts.submit(3, options=SHORTLIST)
    lane.step()

    assert parts.runner.kinds == [StepKind.SHORTLIST]
    assert [row for _, row in parts.runner.admitted] == [0, 1, 2]


def test_a_batch_for_a_kind_takes_memory_once_it_is_needed(parts: Parts, lane: Lane) -> None:
    assert lane.cache_bytes == 0
    parts.submit(3)
    lane.step()
    plain_bytes = lane.cache_bytes
    assert plain_bytes > 0

    parts.submit(3, options=SHORTLIST)
    lane.step()

    assert lane.cache_bytes == 2 * plain_bytes
    assert lane.num_rows == 2


def test_a_step_with_nobody_there_runs_no_network(parts: Parts, lane: Lane) -> None:
    lane.step()

    assert parts.runner.num_steps == 0
    assert parts.sample("engine_last_step_timestamp_seconds") == 0


def test_the_time_of_the_last_step_is_told(parts: Parts, lane: Lane) -> None:
    parts.submit(3)

    lane.step()

    assert parts.sample("engine_last_step_timestamp_seconds") > 1.7e9  # the clock on the wall, not the engine's


def test_a_lane_that_only_fails_is_dead(parts: Parts, lane: Lane) -> None:
    for _ in range(MAX_FAILURES):
        assert lane.is_alive()
        parts.runner.step_failures = [RuntimeError("broken")]
        (future,) = parts.submit(3)
        lane.step()
        with pytest.raises(EngineFailed):
            future.result(0)

    assert not lane.is_alive()


def test_a_step_that_hangs_makes_the_lane_dead_until_it_ends(parts: Parts, lane: Lane) -> None:
    parts.submit(3)
    lane.step()
    decoder = decoder_of(lane._batches[0])
    original, alive = decoder.step, []

    def hang(*arguments: Any, **options: Any) -> Stepped:
        for seconds in (MAX_STEP_SECONDS, 1.0):
            parts.clock.now += seconds
            alive.append(lane.is_alive())
        stepped: Stepped = original(*arguments, **options)
        return stepped

    decoder.step = hang
    lane.step()

    assert alive == [True, False]
    assert lane.is_alive()


def test_an_idle_lane_is_alive_however_long_nobody_comes(parts: Parts, lane: Lane) -> None:
    parts.submit(1)
    step(lane, 2)

    parts.clock.now += 1e6

    assert lane.is_alive()


def test_a_lane_runs_until_its_queue_is_closed_and_answers_who_is_left(parts: Parts, lane: Lane) -> None:
    thread = threading.Thread(target=lane.run)
    thread.start()
    parts.submit(2)[0].result(SECONDS)
    parts.runner.may_step.clear()
    runs = parts.submit(40, 40)
    while lane.num_rows < 2:
        pass  # until the lane has taken them
    (waits,) = parts.submit(40)

    left = parts.queue.close()
    parts.runner.may_step.set()
    thread.join(SECONDS)

    assert not thread.is_alive()
    assert [sentence.future for sentence in left] == [waits]
    for future in runs:
        with pytest.raises(NotServing):
            future.result(0)
    assert lane.num_rows == 0


def test_a_decoder_that_cannot_be_opened_fails_its_sentences_alone(
    parts: Parts, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs,) = parts.submit(3)
    lane.step()

    def fail(kind: StepKind, max_rows: int) -> None:
        raise MemoryError

    monkeypatch.setattr(parts.runner, "open_decoder", fail)
    (fails,) = parts.submit(3, options=SHORTLIST)
    step(lane, 4)

    with pytest.raises(EngineFailed):
        fails.result(0)
    assert runs.result(0).hypotheses[0].ids == tokens(3)
