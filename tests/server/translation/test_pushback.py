"""Callers who come back, by a clock that stands still unless told otherwise."""

import pytest

from server.translation.pushback import Pushback
from tests.fakes import FakeClock


def test_a_single_refusal_says_what_its_cause_does() -> None:
    assert Pushback(FakeClock()).seconds(0.3) == 0.3


def test_those_who_are_refused_at_once_come_back_one_after_the_other() -> None:
    pushback = Pushback(FakeClock())

    assert [pushback.seconds(0.05) for _ in range(5)] == pytest.approx([0.05, 0.05, 0.05, 0.06, 0.08])


def test_a_flood_makes_nobody_wait_for_long() -> None:
    clock = FakeClock()
    pushback = Pushback(clock)

    waits = [pushback.seconds(0.05) for _ in range(1000)]
    assert max(waits) == pytest.approx(3.0)
    assert pushback.seconds(9.0) == 9.0, "unless the cause itself lasts"

    clock.now += 3.0
    assert pushback.seconds(0.05) == 0.05
