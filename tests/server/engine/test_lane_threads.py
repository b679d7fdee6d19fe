"""A lane on a thread of its own, over a fake network: how it begins to idle, and how it ends."""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from server.engine.cores import Cores, Gate
from server.engine.lane import Lane, LaneState
from server.engine.sentence import Sentence
from server.errors import NotServing
from server.network import StepKind
from tests.fakes import EOS
from tests.server.engine.parts import FLOOD, SHORTLIST, Parts, run_on_thread, sentence_of, tokens

SECONDS = 100.0  # far above what any of these needs; a hang fails


def test_a_lane_that_dies_answers_its_sentences_and_frees_their_rows(parts: Parts, lane: Lane) -> None:
    futures = parts.submit(3, 3)
    parts.runner.step_failures = [SystemExit()]

    run_on_thread(lane)

    assert all(isinstance(future.exception(0), NotServing) for future in futures)
    assert (lane.state, lane.has_ended, lane.num_rows) == (LaneState.OUT, True, 0)
    assert parts.dispatch._running_rows == 0
    assert parts.alarm.is_set()


def test_a_lane_that_dies_answers_sentences_of_another_kind_that_have_just_entered(parts: Parts, lane: Lane) -> None:
    (plain,), (short,) = parts.submit(3), parts.submit(3, options=SHORTLIST)
    parts.runner.step_failures = [SystemExit()]

    run_on_thread(lane)

    assert isinstance(plain.exception(0), NotServing)
    assert isinstance(short.exception(0), NotServing)
    assert parts.dispatch._running_rows == 0


def test_a_lane_that_dies_with_a_broken_batch_answers_the_sentences_of_all_batches(parts: Parts, lane: Lane) -> None:
    def remove(_: list[Sentence]) -> list[Sentence]:
        raise RuntimeError("broken")

    futures = [*parts.submit(3), *parts.submit(3, options=SHORTLIST)]
    parts.runner.step_failures = [SystemExit()]
    plans: list[Any] = [batch.plan for batch in lane._batches]
    for plan in plans:
        plan.remove = remove

    with ThreadPoolExecutor(1) as thread, pytest.raises(RuntimeError):
        thread.submit(lane.run).result(SECONDS)

    assert all(isinstance(future.exception(0), NotServing) for future in futures)
    assert lane.has_ended


def test_a_lane_that_dies_answers_a_canary_of_another_kind_that_has_just_entered(parts: Parts, lane: Lane) -> None:
    (plain,) = parts.submit(3)
    lane.step()
    lane.send_canary(canary := sentence_of((2, 50, EOS), SHORTLIST))
    parts.runner.step_failures = [SystemExit()]

    run_on_thread(lane)

    assert isinstance(plain.exception(0), NotServing)
    assert isinstance(canary.future.exception(0), NotServing)


def test_an_abandoned_lane_that_hangs_has_answered_sentences_of_another_kind(parts: Parts, lane: Lane) -> None:
    futures = [*parts.submit(3), *parts.submit(3, options=SHORTLIST)]
    parts.runner.may_step.clear()
    thread = threading.Thread(target=lane.run)
    thread.start()
    while lane.step_started is None:
        pass  # until the lane has taken them

    lane.abandon(NotServing("the engine is lost"))
    are_done = [future.done() for future in futures]
    parts.runner.may_step.set()
    thread.join(SECONDS)

    assert are_done == [True, True]


def test_a_lane_that_is_taken_out_answers_its_sentences_and_its_canary(parts: Parts, lane: Lane) -> None:
    (runs,) = parts.submit(30)
    lane.step()
    canary = sentence_of((2, 50, EOS))
    lane.send_canary(canary)

    lane.take_out()
    run_on_thread(lane)

    for future in (runs, canary.future):
        assert isinstance(future.exception(0), NotServing)
    assert parts.dispatch._running_rows == 0


def test_an_abandoned_lane_that_hangs_has_answered_and_does_no_harm_when_it_comes_back(
    parts: Parts, lane: Lane
) -> None:
    thread = threading.Thread(target=lane.run)
    thread.start()
    parts.runner.may_step.clear()
    (future,) = parts.submit(3)
    while lane.step_started is None:
        pass  # until the lane has taken it

    lane.abandon(NotServing("the engine is lost"))
    error = future.exception(0)
    parts.runner.may_step.set()
    thread.join(SECONDS)

    assert isinstance(error, NotServing)
    assert (lane.has_ended, lane.num_rows, parts.dispatch._running_rows) == (True, 0, 0)


def test_a_lane_runs_until_its_dispatch_is_closed_and_answers_who_is_left(parts: Parts, lane: Lane) -> None:
    thread = threading.Thread(target=lane.run)
    thread.start()
    parts.submit(2)[0].result(SECONDS)
    parts.runner.may_step.clear()
    runs = parts.submit(40, 40)
    while lane.num_rows < 2:
        pass  # until the lane has taken them
    (waits,) = parts.submit(40)

    left = parts.dispatch.close()
    parts.runner.may_step.set()
    thread.join(SECONDS)

    assert not thread.is_alive()
    assert [sentence.future for sentence in left] == [waits]
    for future in runs:
        with pytest.raises(NotServing):
            future.result(0)
    assert lane.num_rows == 0


def test_an_idle_lane_gives_its_caches_back_and_opens_others_when_it_is_wanted() -> None:
    parts = Parts()
    lane_limits = dataclasses.replace(parts.limits, idle_seconds=0.01)
    parts.dispatch.limits = dataclasses.replace(parts.dispatch.limits, lane=lane_limits)
    lane = parts.open_lane()
    thread = threading.Thread(target=lane.run)
    thread.start()
    try:
        (first,) = parts.submit(3)
        assert first.result(SECONDS).hypotheses[0].ids == tokens(3)
        deadline = time.monotonic() + SECONDS
        while lane.cache_bytes and time.monotonic() < deadline:
            time.sleep(0.001)
        assert lane.cache_bytes == 0
        (second,) = parts.submit(2)
        assert second.result(SECONDS).hypotheses[0].ids == tokens(2)
    finally:
        parts.dispatch.close()
        thread.join(SECONDS)

    assert parts.runner.num_decoders == 2
    assert list(lane.kinds) == [StepKind.PLAIN]


def test_a_lane_is_counted_at_the_gate_while_it_has_anything_to_run(parts: Parts) -> None:
    seen: list[str] = []

    class CountingGate(Gate):
        @contextlib.contextmanager
        def work(self) -> Iterator[None]:
            seen.append(f"in after {parts.runner.num_steps} steps")
            yield
            seen.append(f"out after {parts.runner.num_steps} steps")

    lane = parts.open_lane(gate=CountingGate(Cores()))
    thread = threading.Thread(target=lane.run)
    thread.start()
    for num_stays, count in enumerate((2, 1), start=1):
        parts.submit(count)[0].result(SECONDS)
        end = time.monotonic() + SECONDS
        while len(seen) < 2 * num_stays and time.monotonic() < end:
            time.sleep(0.001)
    parts.dispatch.close()
    thread.join(SECONDS)

    assert seen == ["in after 0 steps", "out after 3 steps", "in after 3 steps", "out after 5 steps"]


@pytest.mark.parametrize("event", ["canary", "take_out", "close", "foreground"])
def test_a_resting_lane_goes_on_when_it_is_called(event: str) -> None:
    parts = Parts(num_lanes=2)
    parts.dispatch.clock = time.monotonic
    lane = parts.open_lane()
    parts.dispatch.count_foreground(+1)  # of another lane
    pauses = iter([1.0])  # of the first step, so that the lane would rest for ten seconds
    parts.runner.spoil = lambda *_: time.sleep(next(pauses, 0.0))
    (bulk,) = parts.submit(5, flow=FLOOD.of_bulk())
    thread = threading.Thread(target=lane.run, daemon=True)
    thread.start()
    while not parts.dispatch._is_resting:
        time.sleep(0.001)
    time.sleep(0.05)
    assert len(parts.runner.kinds) == 1, "it takes no step"

    if event == "canary":
        lane.send_canary(canary := sentence_of((2, 50, EOS)))
        assert canary.future.result(5.0).hypotheses[0].ids == tokens(2)
    elif event == "foreground":
        (caller,) = parts.submit(2)
        assert caller.result(5.0).hypotheses[0].ids == tokens(2)
    else:
        lane.take_out() if event == "take_out" else parts.dispatch.close()
        thread.join(5.0)
        assert not thread.is_alive()
        assert len(parts.runner.kinds) == 1, "and none at its end"
        assert isinstance(bulk.exception(0), NotServing)
    parts.dispatch.close()
    thread.join(SECONDS)
    assert lane.has_ended
