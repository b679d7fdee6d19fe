"""A lane beside a flood: when its background is stepped, and with how many rows."""

import math
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.lane import Lane
from tests.fakes import EOS
from tests.server.engine.parts import FLOOD, LITTLE, NEIGHBOUR, Parts, batch_sizes, run_on_thread, sentence_of, tokens


@pytest.fixture(autouse=True)
def quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the background two of a lane's eight rows, so that its steps differ from the foreground's."""
    monkeypatch.setattr("server.engine.background._SHARE", 0.25)


def step(lane: Lane, times: int = 1) -> None:
    for _ in range(times):
        lane.step()


def flood(
    parts: Parts,
    *,
    foreground_seconds: float = 0.01,
    background_seconds: float = 0.01,
    counts: tuple[int, int] = (30, 30),
) -> Future[Result]:
    """Has one flow ask for more than there is, beside another; returns the other's answer, which takes 46 steps."""

    def pass_time(decoder: int, *_: Any) -> None:
        parts.clock.now += background_seconds if decoder else foreground_seconds

    parts.runner.spoil = pass_time
    (answer,) = parts.submit(45, flow=NEIGHBOUR)
    parts.submit(*counts * 30, flow=FLOOD)
    return answer


def test_rows_of_a_flood_do_not_share_the_steps_of_others(parts: Parts, lane: Lane) -> None:
    answer = flood(parts)

    assert batch_sizes(parts, lane, 1) == [1, 2], "a quarter of the lane's eight rows"
    assert set(batch_sizes(parts, lane, 45)) == {1, 2}
    assert answer.result(0).hypotheses[0].ids == tokens(45)
    assert batch_sizes(parts, lane, 9) == [2] * 9, "nobody is before it"


@pytest.mark.parametrize("background_seconds", [0.01, 0.04])
def test_a_flood_earns_a_tenth_of_the_time_that_others_have(
    parts: Parts, lane: Lane, background_seconds: float
) -> None:
    flood(parts, background_seconds=background_seconds)
    sizes = batch_sizes(parts, lane, 46)
    for _ in range(5):
        parts.submit(45, flow=NEIGHBOUR)
        sizes += batch_sizes(parts, lane, 46)

    num_background = sizes.count(2)
    foreground_seconds = 0.01 * (len(sizes) - num_background)
    assert num_background * background_seconds == pytest.approx(0.1 * foreground_seconds, rel=0.15)


def test_time_that_nobody_else_wanted_is_not_held_against_a_flood(parts: Parts, lane: Lane) -> None:
    flood(parts)
    batch_sizes(parts, lane, 46)
    assert batch_sizes(parts, lane, 20) == [2] * 20

    parts.submit(45, flow=NEIGHBOUR)

    assert 2 in batch_sizes(parts, lane, 11)


def test_the_pace_of_a_flood_is_what_time_its_steps_have(parts: Parts, lane: Lane) -> None:
    def pace() -> float:
        return (
            parts.dispatch.check(LITTLE, math.inf, NEIGHBOUR).seconds
            / parts.dispatch.check(LITTLE, math.inf, FLOOD).seconds
        )

    flood(parts, foreground_seconds=0.1, background_seconds=0.1)
    paces = [pace()]
    step(lane, 46)
    paces.append(pace())
    step(lane, 40)
    paces.append(pace())

    assert paces[1] < 0.5 * paces[0]
    assert paces[2] > 2 * paces[1], "it has all the time"


def test_both_the_flood_and_the_others_have_their_seconds_noted(parts: Parts, lane: Lane) -> None:
    flood(parts, foreground_seconds=0.25, background_seconds=1.0)

    lane.step()

    foreground, background = 0.25 * math.exp(-1.0 / 2.0), 1.0 + 0.25  # a second later, and as it is taken to begin
    assert parts.dispatch.background.pace == pytest.approx(background / (foreground + background))


def test_a_bulk_call_alone_has_three_quarters_of_the_rows_and_its_next_caller_has_steps_apart(
    parts: Parts, lane: Lane
) -> None:
    parts.submit(*[30] * 20, flow=FLOOD.of_bulk())
    sizes = batch_sizes(parts, lane, 20)
    (answer,) = parts.submit(5, flow=NEIGHBOUR)
    beside = batch_sizes(parts, lane, 6)

    assert sizes == [6] * 20, "of the lane's eight"
    assert beside[0] == 1, "the caller's own step comes first"
    assert set(beside) == {1, 6}
    assert answer.result(0).hypotheses[0].ids == tokens(5)


def test_a_bulk_call_alone_has_all_rows_if_the_limits_give_them(parts: Parts) -> None:
    parts.dispatch.limits = replace(parts.dispatch.limits, lane=replace(parts.limits, alone_share=1.0))
    lane = parts.open_lane()
    parts.submit(*[30] * 20, flow=FLOOD.of_bulk())

    assert batch_sizes(parts, lane, 5) == [8] * 5


def test_a_bulk_call_gets_no_more_rows_until_nobody_has_called_for_a_second(parts: Parts, lane: Lane) -> None:
    parts.submit(5, flow=NEIGHBOUR)
    parts.submit(*[45] * 20, flow=FLOOD.of_bulk())
    batch_sizes(parts, lane, 10)
    assert [batch.plan.footprint.rows for batch in lane._background] == [2, 0]

    parts.clock.now += 1.0
    lane.step()

    assert [batch.plan.footprint.rows for batch in lane._background] == [6, 0]


def test_a_caller_of_one_lane_counts_for_the_background_of_all() -> None:
    parts = Parts(num_lanes=2)
    lane, other = parts.open_lane(), parts.open_lane()
    parts.submit(5, flow=NEIGHBOUR)
    lane.step()
    parts.submit(*[45] * 20, flow=FLOOD.of_bulk())
    batch_sizes(parts, other, 3)

    assert [batch.plan.footprint.rows for batch in other._background] == [2, 0]


def test_a_lane_rests_beside_the_foreground_of_another_until_it_has_earned_a_step(
    parts: Parts, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def rest(_: object, seconds: float) -> float:
        asked.append(seconds)
        return 0.06

    monkeypatch.setattr(parts.dispatch, "rest", rest)
    parts.runner.spoil = lambda *_: setattr(parts.clock, "now", parts.clock.now + 0.01)
    parts.submit(*[45] * 20, flow=FLOOD.of_bulk())
    lane.step()
    for _ in range(3):
        lane._rest()
    assert asked == pytest.approx([0.1, 0.04]), "the step took 0.01 s, and it earns a tenth"

    lane.step()
    parts.submit(5, flow=NEIGHBOUR)
    lane.step()
    lane._rest()
    assert len(asked) == 2, "it has a foreground itself"


def test_a_lane_tells_whether_it_has_a_foreground(parts: Parts, lane: Lane) -> None:
    parts.submit(2, flow=NEIGHBOUR)
    parts.submit(*[45] * 20, flow=FLOOD.of_bulk())

    told = []
    for _ in range(3):
        lane.step()
        told.append(parts.dispatch._num_foreground)

    assert told == [1, 1, 0], "the eos is a step, too"


def test_a_lane_that_ends_has_no_foreground(parts: Parts, lane: Lane) -> None:
    parts.submit(45, flow=NEIGHBOUR)
    lane.step()
    assert parts.dispatch._num_foreground == 1

    lane.take_out()
    run_on_thread(lane)

    assert parts.dispatch._num_foreground == 0


def test_a_flood_takes_no_row_that_the_others_have(parts: Parts, lane: Lane) -> None:
    flood(parts)
    parts.submit(*[45] * 5, flow=NEIGHBOUR)

    lane.step()

    assert [batch.plan.footprint.rows for batch in lane._foreground] == [6, 0]
    assert [batch.plan.footprint.rows for batch in lane._background] == [2, 0]


def test_others_take_no_row_that_a_flood_has(parts: Parts, lane: Lane) -> None:
    flood(parts)
    lane.step()
    parts.submit(*[45] * 5, flow=NEIGHBOUR)

    lane.step()

    assert [batch.plan.footprint.rows for batch in lane._foreground] == [6, 0]
    assert [batch.plan.footprint.rows for batch in lane._background] == [2, 0]


def test_nothing_of_a_flood_enters_while_a_canary_waits_for_rows(parts: Parts, lane: Lane) -> None:
    flood(parts, counts=(10, 30))
    lane.step()
    lane.send_canary(canary := sentence_of((1, 50, EOS), DecodingOptions(beam_size=8)))

    waiting: list[int] = []
    while not lane._foreground[0].plan.footprint.rows >= 8 and len(waiting) < 200:
        waiting.append(parts.dispatch.waiting.num_sentences)
        lane.step()
    step(lane, 3)

    assert len(waiting) > 30, "until both have ended"
    assert set(waiting) == {58}
    assert canary.future.result(0).hypotheses[0].ids == tokens(1)


def test_a_suspect_lane_takes_nothing_of_a_flood(parts: Parts) -> None:
    lane = parts.open_lane(is_proven=False)
    flood(parts)

    assert batch_sizes(parts, lane, 3) == []
    lane.forgive(0)
    assert batch_sizes(parts, lane, 1) == [1, 2]
