"""Whose turn it is, by a clock that stands unless it is moved."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from server.engine.busy import BusyEngines
from tests.fakes import FakeClock

SECONDS = 20  # far above what any of these needs


@dataclass(eq=False)
class Engine:
    """Stands for one."""

    asked_seconds: float = 0.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def busy(clock: FakeClock) -> BusyEngines:
    return BusyEngines(num_cores=1, clock=clock)


def use(busy: BusyEngines, engine: Engine, clock: FakeClock, seconds: float) -> None:
    """A lane's step of so many seconds."""
    with busy.lane(engine), busy.turn(engine):
        clock.now += seconds


def in_turn(busy: BusyEngines, engine: Engine) -> tuple[threading.Event, Callable[[], None]]:
    """A lane on a thread that waits for its turn: whether it has come, and what joins the thread."""
    has_come = threading.Event()

    def run() -> None:
        with busy.lane(engine), busy.turn(engine):
            has_come.set()

    thread = threading.Thread(target=run)
    thread.start()
    return has_come, lambda: thread.join(SECONDS)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's turn comes merely because it has waited for long."""
    monkeypatch.setattr("server.engine.busy._MOST_WAIT_SECONDS", 2 * SECONDS)


def comes_beside(other: Engine, engine: Engine, busy: BusyEngines) -> bool:
    """Whether an engine's turn comes while another has a lane at work."""
    with busy.lane(other):
        has_come, join = in_turn(busy, engine)
        came = has_come.wait(SECONDS)
    join()
    return came


def test_one_is_at_work_while_no_other_engine_runs_anything(busy: BusyEngines) -> None:
    one, other = Engine(), Engine()
    seen = [busy.has_one_at_work]
    with busy.lane(one):
        with busy.lane(one):  # of its lanes another
            seen.append(busy.has_one_at_work)
        with busy.lane(other):
            seen.append(busy.has_one_at_work)
        seen.append(busy.has_one_at_work)

    assert seen == [True, True, False, True]


def test_who_has_had_its_share_waits_for_the_lanes_of_who_has_not(busy: BusyEngines, clock: FakeClock) -> None:
    large, small = Engine(), Engine()
    use(busy, small, clock, 0.1)
    use(busy, large, clock, 3.0)

    with busy.lane(small):
        with busy.turn(small) as waited:
            pass
        has_come, join = in_turn(busy, large)
        came_early = has_come.wait(0.03)
    join()

    assert (waited, came_early, has_come.is_set()) == (0.0, False, True)


@pytest.mark.usefixtures("patience")
def test_nobody_waits_where_there_are_cores_for_all(clock: FakeClock) -> None:
    busy, large, small = BusyEngines(num_cores=2, clock=clock), Engine(), Engine()
    use(busy, small, clock, 0.1)
    use(busy, large, clock, 9.0)

    assert comes_beside(small, large, busy)


def test_nobody_waits_for_ever(busy: BusyEngines, clock: FakeClock) -> None:
    large, hung = Engine(), Engine()
    use(busy, hung, clock, 0.1)
    use(busy, large, clock, 3.0)

    with busy.lane(hung):
        has_come, join = in_turn(busy, large)
        join()

    assert has_come.is_set()


def test_who_asks_for_least_may_have_all_but_the_others_half_shares(busy: BusyEngines, clock: FakeClock) -> None:
    large, small = Engine(asked_seconds=0.4), Engine(asked_seconds=0.02)
    use(busy, large, clock, 0.7)
    use(busy, small, clock, 1.3)  # of two seconds: more than an even share

    with busy.lane(large), busy.lane(small):
        modest = [{*busy._modest(clock.now)}]
        for engine in (small, large):
            use(busy, engine, clock, 0.6)
            modest.append({*busy._modest(clock.now)})

    assert modest == [{large, small}, {large}, {small}]


@pytest.mark.usefixtures("patience")
def test_what_an_engine_has_had_fades(busy: BusyEngines, clock: FakeClock) -> None:
    large, small = Engine(), Engine()
    use(busy, small, clock, 0.1)
    use(busy, large, clock, 3.0)
    clock.now += 10.0

    assert comes_beside(small, large, busy)


def test_cores_are_divided_while_several_engines_use_more_lanes_than_there_are_cores(
    busy: BusyEngines, clock: FakeClock
) -> None:
    large, small = Engine(), Engine()
    seen = [busy.is_divided]
    for engine in (large, small):
        use(busy, engine, clock, 0.1)
        seen.append(busy.is_divided)
    clock.now += 10.0  # whoever has not run anything of late has no more say
    seen.append(busy.is_divided)

    assert seen == [False, False, True, False]


def test_cores_that_are_enough_for_all_are_not_divided(clock: FakeClock) -> None:
    busy, large, small = BusyEngines(num_cores=2, clock=clock), Engine(), Engine()
    use(busy, large, clock, 0.1)
    use(busy, small, clock, 0.1)
    assert not busy.is_divided

    with busy.lane(large), busy.lane(large):
        assert busy.is_divided


def test_engines_that_have_gone_are_forgotten(busy: BusyEngines, clock: FakeClock) -> None:
    large, small = Engine(), Engine()
    use(busy, small, clock, 0.1)
    use(busy, large, clock, 3.0)

    del small

    assert len(busy._uses) == 1
