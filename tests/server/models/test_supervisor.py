"""A supervisor over an engine whose lanes run on their own threads, on a clock that moves half a second a look.

Every kind of fault on one lane of two and on both: each future ends, what is told follows, rows are free, and the log
does not spin.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from server.errors import Code, NotServing
from tests.server.engine.parts import tokens
from tests.server.models.watched import (
    ENDS,
    FAULTS,
    Watched,
    assert_rows_are_free,
    on_first_decoder,
    once,
    raising,
)

MOST_LINES = 40


@pytest.mark.parametrize("fault", ["raise", "NaN", "no memory"])
@pytest.mark.parametrize("num_lanes", [1, 2])
def test_a_lane_that_fails_once_goes_on_after_its_canary(
    watch: Callable[..., Watched], fault: str, num_lanes: int
) -> None:
    spoil, codes = FAULTS[fault]
    watched = watch(num_lanes, once(spoil))
    watched.submit(*[3] * 6)

    seconds = watched.look_until(lambda: all(each.done() for each in watched.submitted) and watched.is_well())
    (after,) = watched.submit(3)
    watched.look_until(after.done)

    assert seconds <= 10
    assert watched.codes() <= {Code.OK, *codes}
    assert after.result(0).hypotheses[0].ids == tokens(3)
    assert watched.sample("canaries_total", result="passed") >= 1
    assert watched.sample("lane_rebuilds_total") == 0
    assert watched.supervisor.is_alive()
    assert_rows_are_free(watched)


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - ENDS))
def test_a_bad_lane_of_two_is_replaced_once_and_the_new_one_is_proven(
    watch: Callable[..., Watched], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoil, codes = FAULTS[fault]
    watched = watch(2, on_first_decoder(spoil))
    watched.submit(*[3] * 6)

    watched.look_until(lambda: watched.sample("lane_rebuilds_total") == 1 and watched.is_well())
    watched.look_until(lambda: all(each.done() for each in watched.submitted))
    told = watched.codes()
    after = watched.submit(*[3] * 6)
    watched.look_until(lambda: all(each.done() for each in after))

    assert told <= {Code.OK, *codes}
    assert [future.result(0).hypotheses[0].ids for future in after] == [tokens(3)] * 6
    assert bool(watched.distrusted) == (fault in ("constant logits", "wrong but finite"))
    assert watched.supervisor.is_alive()
    assert watched.sample("lanes", state="serving") == 2
    assert_rows_are_free(watched)
    assert len(caplog.records) <= MOST_LINES


@pytest.mark.parametrize("fault", FAULTS)
def test_an_engine_whose_lanes_are_all_bad_is_lost_and_everybody_is_answered(
    watch: Callable[..., Watched], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoil, codes = FAULTS[fault]
    watched = watch(2, spoil)
    watched.submit(*[3] * 60)

    watched.look_until(lambda: not watched.supervisor.is_alive())
    for future in watched.submitted:
        future.exception(10)

    is_silent = fault in ("constant logits", "wrong but finite")  # so that sentences are wrong until the canary comes
    assert watched.codes() <= {Code.UNAVAILABLE, *codes, *([Code.OK] if is_silent else [])}
    assert not watched.supervisor.is_ready()
    with pytest.raises(NotServing):
        watched.submit(3)
    watched.engine.stop()
    assert_rows_are_free(watched)
    assert len(caplog.records) <= MOST_LINES


@pytest.mark.parametrize("name", ["_drop_over", "_rearrange"])
@pytest.mark.parametrize("num_bad", [1, 2])
def test_a_batch_that_raises_does_not_spin_and_its_lane_is_replaced(
    watch: Callable[..., Watched], num_bad: int, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    watched = watch(2)
    for lane in watched.engine.lanes[:num_bad]:
        for batch in lane._batches:
            setattr(batch, name, raising(RuntimeError("broken")))
    watched.submit(*[3] * 6)

    watched.look_until(lambda: all(each.done() for each in watched.submitted))
    watched.look_until(lambda: watched.sample("lane_rebuilds_total") == num_bad and watched.is_well())

    assert watched.codes() <= {Code.OK, Code.INTERNAL}
    assert_rows_are_free(watched)
    assert len(caplog.records) <= MOST_LINES


@pytest.mark.parametrize("num_hung", [1, 2])
def test_a_hung_lane_loses_the_engine_and_everybody_is_answered_at_once(
    watch: Callable[..., Watched], num_hung: int
) -> None:
    hangs, may_go = threading.Event(), threading.Event()

    def hang(number: int, ids: Any, log_probs: Any) -> None:
        if number < num_hung:
            hangs.set()
            may_go.wait()

    watched = watch(2, hang)
    watched.submit(*[30] * 60)
    assert hangs.wait(100)

    seconds = watched.look_until(lambda: not watched.supervisor.is_alive())
    codes = watched.codes()
    may_go.set()
    watched.engine.stop()

    assert 20 < seconds <= 21
    assert Code.UNAVAILABLE in codes
    assert codes <= {Code.OK, Code.UNAVAILABLE}
    assert_rows_are_free(watched)


@pytest.mark.parametrize("asleep_seconds", [5.0, 3600.0])
def test_a_process_that_was_stopped_or_starved_has_no_hung_lane(
    watch: Callable[..., Watched], asleep_seconds: float
) -> None:
    watched = watch(1)
    watched.runner.may_step.clear()
    (future,) = watched.submit(1)

    for _ in range(8):
        watched.supervisor.look()
        watched.clock.now += asleep_seconds
    watched.supervisor.look()
    watched.runner.may_step.set()
    watched.look_until(future.done)

    assert watched.supervisor.is_alive()
    assert future.result(0).hypotheses[0].ids == tokens(1)


def test_a_lane_is_replaced_once_and_the_second_time_the_engine_is_lost(watch: Callable[..., Watched]) -> None:
    watched = watch(1)
    for is_lost in (False, True):
        watched.runner.step_failures = [SystemExit("broken")]
        (future,) = watched.submit(3)
        watched.look_until(future.done)
        with pytest.raises(NotServing):
            future.result(0)
        if not is_lost:
            watched.look_until(watched.is_well)

    watched.look_until(lambda: not watched.supervisor.is_alive())

    assert watched.sample("lane_rebuilds_total") == 1


def test_readiness_is_lost_while_a_lane_is_being_replaced(watch: Callable[..., Watched]) -> None:
    watched = watch(1, raising(RuntimeError("broken")))
    watched.submit(3)
    seen = []

    def note() -> bool:
        seen.append((watched.supervisor.is_ready(), watched.supervisor.is_alive()))
        return not watched.supervisor.is_alive()

    watched.look_until(note)

    assert (False, True) in seen  # suspect, out, or new and not proven
    assert seen[-1] == (False, False)


def test_it_watches_on_a_thread_of_its_own_until_it_is_stopped(watch: Callable[..., Watched]) -> None:
    watched = watch(2, once(raising(RuntimeError("broken"))))
    watched.supervisor.start()
    (future,) = watched.submit(3)
    assert future.exception(10) is not None

    (after,) = watched.submit(3)
    result = after.result(10)
    watched.supervisor.stop()

    assert result.hypotheses[0].ids == tokens(3)
    assert not watched.supervisor._thread.is_alive()


def test_nobody_to_watch_the_lanes_is_as_bad_as_no_lanes(
    watch: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watched = watch(1)
    monkeypatch.setattr(watched.supervisor, "look", raising(RuntimeError("broken")))

    watched.supervisor.start()
    watched.supervisor._thread.join(10)

    assert not watched.supervisor.is_alive()
    assert logging.CRITICAL in [record.levelno for record in caplog.records]
