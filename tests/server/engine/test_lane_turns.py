"""A lane behind a gate: what it asks for, and what its turn says."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from server.engine.cores import Cores, Gate
from tests.server.engine.parts import (
    SHORTLIST,
    Parts,
    slow_cost,
)


class FixedGate(Gate):
    """Notes what was asked for; a turn comes after `wait`."""

    def __init__(self, wait: Callable[[], None] = lambda: None) -> None:
        super().__init__(Cores())
        self.is_alone, self.wait, self.all_asked = True, wait, list[float]()

    @contextlib.contextmanager
    def turn(self, asked_seconds: float) -> Iterator[bool]:
        self.all_asked.append(asked_seconds)
        self.wait()
        yield self.is_alone


def test_a_lane_is_not_alone_while_another_engine_runs_anything(parts: Parts) -> None:
    gate = FixedGate()
    gate.is_alone = False
    lane = parts.open_lane(gate=gate)
    parts.submit(3)
    lane.step()
    gate.is_alone = True
    lane.step()

    assert parts.runner.was_alone == [False, True]


def test_a_lane_asks_for_its_turn_with_the_time_that_all_sentences_take() -> None:
    parts = Parts(max_rows=20, cost=slow_cost())  # 20 rows take a second
    gate = FixedGate()
    lane = parts.open_lane(gate=gate)
    lane.step()
    parts.submit(*[9] * 10)
    lane.step()

    assert gate.all_asked == pytest.approx([0.0, 0.5], rel=0.01)


def test_the_wait_for_a_turn_is_part_of_what_a_row_costs_those_who_wait(parts: Parts) -> None:
    seen = []
    parts.cost.observe_step = lambda *step: seen.append(step)  # type: ignore[method-assign]

    def pass_time(*_: Any) -> None:
        parts.clock.now += 0.25

    parts.runner.spoil = pass_time

    def wait() -> None:
        parts.clock.now += 2.0

    lane = parts.open_lane(gate=FixedGate(wait))
    parts.clock.now = 10.0
    parts.submit(*[9] * 4, options=SHORTLIST)
    parts.submit(*[1] * 4)
    lane.step()
    (waits,) = parts.submit(1)
    lane.step()

    assert not waits.done()
    assert seen[:2] == [(4, 0.25, None), (4, 0.25, None)], "nobody waited"
    assert seen[2:] == [(4, 0.25, 2.25), (4, 0.25, 0.25)], "the batches have waited once"
