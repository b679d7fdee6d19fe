"""The engine over a fake network, its lanes on their own threads."""

import contextlib
from collections.abc import Callable

import pytest

from server.errors import NotServing
from tests.fakes import EOS
from tests.server.engine.bench import Bench
from tests.server.engine.parts import GREEDY, tokens

SECONDS = 100.0  # far above what any of these needs; a hang fails


def test_a_canary_runs_on_its_lane_alone(running: Callable[..., Bench]) -> None:
    bench = running(num_lanes=3)
    futures = [bench.engine.send_canary(lane, (2, 50, EOS), GREEDY) for lane in bench.engine.lanes]

    assert [future.result(SECONDS).hypotheses[0].ids for future in futures] == [tokens(2)] * 3
    assert bench.runner.num_decoders == 3


def test_a_lane_that_died_is_replaced_by_a_new_one_that_is_to_be_proven(running: Callable[..., Bench]) -> None:
    bench = running(num_lanes=1)
    bench.runner.step_failures = [SystemExit()]
    with pytest.raises(NotServing):
        bench.submit(3)[0].result(SECONDS)
    assert bench.engine.alarm.wait(SECONDS)

    lane = bench.engine.replace(0)
    (waits,) = bench.submit(1)
    bench.engine.send_canary(lane, (2, 50, EOS), GREEDY).result(SECONDS)
    assert not waits.done()
    lane.forgive(0)

    assert waits.result(SECONDS).hypotheses[0].ids == tokens(1)
    assert bench.engine.lanes == [lane]
    assert bench.runner.num_decoders == 2


def test_an_abandoned_engine_has_answered_everybody_although_a_lane_hangs(running: Callable[..., Bench]) -> None:
    bench = running(max_rows=4)
    bench.runner.may_step.clear()
    futures = bench.submit(*[30] * 8)
    while bench.sample("lane_rows_used") < 4:
        pass  # until the lane has taken them

    bench.engine.abandon(NotServing("the engine is lost"))

    assert all(isinstance(future.exception(0), NotServing) for future in futures)
    with pytest.raises(NotServing):
        bench.submit(1)


def test_all_sentences_are_translated_on_several_lanes(running: Callable[..., Bench]) -> None:
    bench = running(num_lanes=3)
    counts = [1 + i % 7 for i in range(90)]

    futures = bench.submit(*counts)

    assert [len(future.result(SECONDS).hypotheses[0].ids) for future in futures] == counts


def test_stop_answers_whatever_is_left(running: Callable[..., Bench]) -> None:
    bench = running(max_rows=4)
    bench.runner.may_step.clear()
    futures = bench.submit(*[20] * 8)
    bench.runner.may_step.set()

    bench.engine.stop()

    for future in futures:
        with contextlib.suppress(NotServing):
            assert future.result(SECONDS).hypotheses[0].ids == tokens(20)
    with pytest.raises(NotServing):
        bench.submit(1)
