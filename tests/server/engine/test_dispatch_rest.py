"""How a lane without a foreground rests while others have one."""

import math
import threading
import time

import pytest

from server.engine.dispatch import Dispatch
from tests.fakes import FakeClock
from tests.server.engine.parts import FLOOD, LITTLE, NEIGHBOUR, add_singles, new_dispatch

SECONDS = 30.0  # after which a test has failed


class Resting:
    """A lane that rests on a thread of its own; returns from `__init__` once it does."""

    def __init__(self, dispatch: Dispatch, seconds: float = math.inf) -> None:
        self.is_wanted = threading.Event()
        self.rested: list[float] = []
        has_asked = threading.Event()

        def is_wanted() -> bool:
            has_asked.set()
            return self.is_wanted.is_set()

        self._thread = threading.Thread(
            target=lambda: self.rested.append(dispatch.rest(is_wanted, seconds)), daemon=True
        )
        self._thread.start()
        assert has_asked.wait(SECONDS)

    def join(self) -> float:
        """Returns the seconds that it has rested."""
        self._thread.join(SECONDS)
        assert self.rested, "nobody has woken it"
        (rested,) = self.rested
        return rested


@pytest.fixture
def dispatch() -> Dispatch:
    """One of three lanes, of which one has a foreground."""
    dispatch = new_dispatch(num_lanes=3)
    dispatch.clock = time.monotonic  # the pause below is real
    dispatch.count_foreground(+1)
    return dispatch


def test_no_lane_rests_while_no_other_has_a_foreground() -> None:
    assert new_dispatch(num_lanes=2).rest(lambda: False, 0.01) == 0.0


def test_a_lane_rests_until_the_time_is_up(dispatch: Dispatch) -> None:
    assert 0.01 <= dispatch.rest(lambda: False, 0.01) < SECONDS


def test_a_resting_lane_goes_on_when_the_last_foreground_has_ended(dispatch: Dispatch) -> None:
    dispatch.count_foreground(+1)
    lane = Resting(dispatch)
    dispatch.count_foreground(-1)
    time.sleep(0.02)
    assert not lane.rested

    dispatch.count_foreground(-1)

    assert lane.join() > 0.0


def test_a_resting_lane_goes_on_for_a_sentence_of_the_foreground_only(dispatch: Dispatch) -> None:
    lane = Resting(dispatch)
    add_singles(dispatch, 1, FLOOD.of_bulk())
    time.sleep(0.02)
    assert not lane.rested

    add_singles(dispatch, 1, NEIGHBOUR)

    assert lane.join() > 0.0


def test_a_resting_lane_goes_on_when_it_is_wanted_and_at_the_end() -> None:
    for event in ("wake", "close"):
        dispatch = new_dispatch(num_lanes=2)
        dispatch.count_foreground(+1)
        lane = Resting(dispatch)
        if event == "wake":
            lane.is_wanted.set()
            dispatch.wake()
        else:
            dispatch.close()

        assert lane.join() >= 0.0, event


def test_no_lane_rests_while_another_one_has_nothing_to_do(dispatch: Dispatch) -> None:
    lane, is_wanted = Resting(dispatch), threading.Event()

    idle = threading.Thread(target=dispatch.wait, args=[is_wanted.is_set], daemon=True)
    idle.start()
    lane.join()
    assert dispatch.rest(lambda: False, 0.01) == 0.0

    is_wanted.set()
    dispatch.wake()
    idle.join(SECONDS)
    assert dispatch.rest(lambda: False, 0.01) > 0.0


def test_one_lane_rests_at_a_time(dispatch: Dispatch) -> None:
    lane = Resting(dispatch)

    assert dispatch.rest(lambda: False, 0.01) == 0.0

    dispatch.count_foreground(-1)
    lane.join()
    dispatch.count_foreground(+1)
    assert dispatch.rest(lambda: False, 0.01) > 0.0, "another one may rest after it"


def test_the_time_that_a_lane_rests_is_the_foregrounds() -> None:
    clock = FakeClock()
    dispatch = new_dispatch(num_lanes=2, clock=clock)
    add_singles(dispatch, 1, FLOOD.of_bulk())
    dispatch.count_foreground(+1)

    def pace() -> float:
        one, other = (dispatch.check(LITTLE, math.inf, flow).seconds for flow in (NEIGHBOUR, FLOOD.of_bulk()))
        return one / other

    before = pace()
    lane = Resting(dispatch)
    clock.now += 1.0
    dispatch.count_foreground(-1)

    assert lane.join() == 1.0
    assert pace() < 0.5 * before
    assert dispatch.background.share(0.75) == 0.125
    clock.now += 1.0
    assert dispatch.background.share(0.75) == 0.75, "nobody has called for a second"
