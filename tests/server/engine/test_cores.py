"""Whose turn it is, by a clock that stands unless it is moved."""

import gc
import threading
import weakref
from collections.abc import Callable

import pytest

from server.engine.cores import Cores, Gate
from tests.fakes import FakeClock

SECONDS = 100.0  # far above what any of these needs


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cores(clock: FakeClock) -> Cores:
    return Cores(num_cores=1, clock=clock)


def use(gate: Gate, clock: FakeClock, seconds: float, asked_seconds: float = 0.0) -> bool:
    """A lane's step of this number of seconds; returns whether its engine was alone."""
    with gate.work(), gate.turn(asked_seconds) as is_alone:
        clock.now += seconds
    return is_alone


def in_turn(gate: Gate) -> tuple[threading.Event, Callable[[], None]]:
    """A lane on a thread that waits for its turn: whether it has come, and what joins the thread."""
    has_come = threading.Event()

    def run() -> None:
        with gate.work(), gate.turn(0.0):
            has_come.set()

    thread = threading.Thread(target=run)
    thread.start()
    return has_come, lambda: thread.join(SECONDS)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn comes merely because its lane has waited for long."""
    monkeypatch.setattr("server.engine.cores._MOST_WAIT_SECONDS", 2 * SECONDS)


def comes_beside(other: Gate, gate: Gate) -> bool:
    """Whether an engine's turn comes while another has a lane at work."""
    with other.work():
        has_come, join = in_turn(gate)
        came = has_come.wait(SECONDS)
    join()
    return came


def test_an_engine_is_alone_while_no_other_runs_anything(cores: Cores, clock: FakeClock) -> None:
    one, other = Gate(cores), Gate(cores)
    seen = [use(one, clock, 0.0)]
    with one.work():  # another of its lanes
        seen.append(use(one, clock, 0.0))
    with other.work():
        seen.append(use(one, clock, 0.0))
    seen.append(use(one, clock, 0.0))

    assert seen == [True, True, False, True]


def test_the_only_engine_is_always_alone_and_never_waits(cores: Cores, clock: FakeClock) -> None:
    gate = Gate(cores)

    with gate.work(), gate.work(), gate.turn(1e9) as one, gate.turn(1e9) as other:
        clock.now += 100.0

    assert (one, other, use(gate, clock, 100.0)) == (True, True, True)


def test_an_engine_beyond_its_share_waits_for_the_lanes_of_one_within(cores: Cores, clock: FakeClock) -> None:
    large, small = Gate(cores), Gate(cores)
    use(small, clock, 0.1)
    use(large, clock, 3.0)

    with small.work():
        with large.work():
            within = cores.within_share()
        has_come, join = in_turn(large)
        came_early = has_come.wait(0.03)
    join()

    assert (within, came_early, has_come.is_set()) == ([small], False, True)


@pytest.mark.usefixtures("patience")
def test_no_engine_waits_where_there_are_cores_for_all(clock: FakeClock) -> None:
    cores = Cores(num_cores=2, clock=clock)
    large, small = Gate(cores), Gate(cores)
    use(small, clock, 0.1)
    use(large, clock, 9.0)

    assert comes_beside(small, large)


def test_no_engine_waits_for_ever(cores: Cores, clock: FakeClock) -> None:
    large, hung = Gate(cores), Gate(cores)
    use(hung, clock, 0.1)
    use(large, clock, 3.0)

    with hung.work():
        has_come, join = in_turn(large)
        join()

    assert has_come.is_set()


def test_the_engine_that_asks_for_least_may_have_all_but_the_others_half_shares(cores: Cores, clock: FakeClock) -> None:
    large, small = Gate(cores), Gate(cores)
    use(large, clock, 0.7, asked_seconds=0.4)
    use(small, clock, 1.3, asked_seconds=0.02)  # of two seconds: more than an even share

    with large.work(), small.work():
        within = [{*cores.within_share()}]
        for gate, asked_seconds in ((small, 0.02), (large, 0.4)):
            use(gate, clock, 0.6, asked_seconds)
            within.append({*cores.within_share()})

    assert within == [{large, small}, {large}, {small}]


@pytest.mark.usefixtures("patience")
def test_what_an_engine_has_had_fades(cores: Cores, clock: FakeClock) -> None:
    large, small = Gate(cores), Gate(cores)
    use(small, clock, 0.1)
    use(large, clock, 3.0)
    clock.now += 10.0

    assert comes_beside(small, large)


def test_engines_that_have_gone_are_forgotten(cores: Cores, clock: FakeClock) -> None:
    large, small = Gate(cores), Gate(cores)
    use(small, clock, 0.1)
    use(large, clock, 3.0)
    gone = weakref.ref(small)

    del small
    gc.collect()

    assert gone() is None
