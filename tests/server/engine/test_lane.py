"""A lane over a fake network, stepped by hand."""

import math
from typing import Any

import pytest

from server.decoding.result import Timings
from server.engine.flow import ANYONE
from server.engine.lane import Lane
from server.errors import DeadlineExceeded, Overloaded
from server.network import StepKind
from tests.server.engine.parts import GREEDY, SHORTLIST, Parts, Stepped, decoder_of, tokens


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
    while parts.dispatch.waiting.num_sentences:
        lane.step()
        num_steps += 1

    assert parts.sample("batch_rows_sum") / num_steps > 7.5  # of 8 at every turn


def test_batches_of_a_lane_share_its_rows(parts: Parts, lane: Lane) -> None:
    parts.submit(*[3] * 5)
    parts.submit(*[3] * 5, options=SHORTLIST)

    lane.step()

    assert lane.num_rows == 8
    assert parts.dispatch.waiting.num_sentences == 2


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


def test_the_step_it_takes_is_told(parts: Parts, lane: Lane) -> None:
    parts.submit(3)
    lane.step()
    decoder = decoder_of(lane._batches[0])
    original, told = decoder.step, []

    def take_long(*arguments: Any, **options: Any) -> Stepped:
        told.append(lane.step_started)
        parts.clock.now += 2.0
        stepped: Stepped = original(*arguments, **options)
        return stepped

    decoder.step = take_long
    step(lane, 3)

    assert told == [0.0, 2.0, 4.0]
    assert lane.step_started is None


def test_timings_are_the_clocks(parts: Parts, lane: Lane) -> None:
    (future,) = parts.submit(1)
    parts.clock.now = 2.0
    lane.step()
    parts.clock.now = 5.0
    lane.step()

    result = future.result(0)
    assert result.timings == Timings(queue_seconds=2.0, encode_seconds=0.0, decode_seconds=3.0)
    assert parts.sample("queue_duration_seconds_count") == 1
    assert parts.sample("queue_duration_seconds_sum") == 2.0


def test_the_waits_of_the_background_are_not_measured(parts: Parts, lane: Lane) -> None:
    (bulk,) = parts.submit(1, flow=ANYONE.of_bulk())
    step(lane, 2)

    assert bulk.done()
    assert parts.sample("queue_duration_seconds_count") == 0


def test_expired_sentence_never_starts_a_step(parts: Parts, lane: Lane) -> None:
    (expired,) = parts.submit(5, deadline=1.0)
    parts.clock.now = 1.0

    lane.step()

    with pytest.raises(DeadlineExceeded):
        expired.result(0)
    assert parts.runner.num_steps == 0
    assert parts.sample("sentences_total", outcome="deadline") == 1


def test_sentence_that_could_not_be_in_time_any_more_is_told_so(parts: Parts, lane: Lane) -> None:
    def pass_time(*_: Any) -> None:
        parts.clock.now += 0.01

    parts.runner.spoil = pass_time
    parts.submit(*[30] * 8)
    lane.step()
    (late,) = parts.submit(5, deadline=1.0)
    parts.clock.now = 0.999

    lane.step()

    with pytest.raises(Overloaded, match="would have come after the deadline") as caught:
        late.result(0)
    assert caught.value.reason == "deadline"
    assert parts.sample("sentences_total", outcome="late") == 1


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_sentence_that_is_over_never_runs_whenever_it_came(parts: Parts, lane: Lane, is_cancelled: bool) -> None:
    (runs,) = parts.submit(9)
    lane.step()  # which looks at those who wait; the next look is in a while
    (over,) = parts.submit(5, deadline=math.inf if is_cancelled else 0.02)
    if is_cancelled:
        over.cancel()
    parts.clock.now = 0.03

    step(lane, 9)

    assert runs.result(0).hypotheses[0].ids == tokens(9)
    assert is_cancelled or isinstance(over.exception(0), DeadlineExceeded)
    assert parts.runner.admitted == [(StepKind.PLAIN, 0)], "the other one took no row"


def test_sentences_wait_for_the_next_entry_where_entering_takes_long(parts: Parts, lane: Lane) -> None:
    parts.runner.entry_interval = 3
    parts.submit(9)
    lane.step()
    parts.submit(9, 9)
    entered = []
    for _ in range(3):
        lane.step()
        entered.append(lane.num_rows)

    assert entered == [1, 1, 3]


def test_sentences_enter_an_empty_batch_at_once(parts: Parts, lane: Lane) -> None:
    parts.runner.entry_interval = 100
    (first,) = parts.submit(1)
    step(lane, 2)
    (second,) = parts.submit(1)
    step(lane, 2)

    assert first.done()
    assert second.done()
