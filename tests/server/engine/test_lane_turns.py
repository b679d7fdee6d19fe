"""A lane behind a gate: what it asks for, and what its turn says."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from server.engine.gate import OpenGate, Turn
from tests.server.engine.parts import (
    SHORTLIST,
    Parts,
    slow_cost,
)


class FixedGate(OpenGate):
    """Has every turn be the same; notes what was asked for."""

    def __init__(self, turn: Turn) -> None:
        self.fixed, self.asked_seconds = turn, list[float]()

    @contextlib.contextmanager
    def turn(self, asked_seconds: float) -> Iterator[Turn]:
        self.asked_seconds.append(asked_seconds)
        yield self.fixed


def test_a_lane_is_not_alone_while_another_engine_runs_anything(parts: Parts) -> None:
    gate = FixedGate(Turn(is_alone=False))
    lane = parts.open_lane(gate=gate)
    parts.submit(3)
    lane.step()
    gate.fixed = Turn()
    lane.step()

    assert parts.runner.was_alone == [False, True]


def test_a_lane_asks_for_its_turn_with_the_time_that_all_sentences_take() -> None:
    parts = Parts(max_rows=20, cost=slow_cost())  # 20 rows take a second
    gate = FixedGate(Turn())
    lane = parts.open_lane(gate=gate)
    lane.step()
    parts.submit(*[9] * 10)
    lane.step()

    assert gate.asked_seconds == pytest.approx([0.0, 0.5], rel=0.01)


def test_the_wait_for_a_turn_is_part_of_what_a_row_costs_those_who_wait(parts: Parts) -> None:
    seen = []
    parts.cost.observe_step = lambda *step: seen.append(step)  # type: ignore[method-assign]

    def pass_time(*_: Any) -> None:
        parts.clock.now += 0.25

    parts.runner.spoil = pass_time
    lane = parts.open_lane(gate=FixedGate(Turn(waited_seconds=2.0)))
    parts.clock.now = 10.0
    parts.submit(*[9] * 4, options=SHORTLIST)
    parts.submit(*[1] * 4)
    lane.step()
    (waits,) = parts.submit(1)
    lane.step()

    assert not waits.done()
    assert seen[:2] == [(4, 0.25, None), (4, 0.25, None)], "nobody waited"
    assert seen[2:] == [(4, 0.25, 2.25), (4, 0.25, 0.25)], "the batches have waited once"
