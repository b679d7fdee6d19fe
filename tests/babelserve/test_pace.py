"""Of time nothing passes here but what a test says: nobody waits."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from babelserve.errors import DeadlineExceeded, Overloaded, Unavailable
from babelserve.pace import Pace


class Clock:
    """Gives the instant that a test has set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Paced(Pace):
    """A pace with its clock, and what it has told."""

    def __init__(self, *, in_flight: int = 4, batch_lines: int = 8, patience_seconds: float = 60.0) -> None:
        self.clock = Clock()
        self.told: list[str] = []
        super().__init__(
            in_flight=in_flight,
            batch_lines=batch_lines,
            patience_seconds=patience_seconds,
            tell=self.told.append,
            clock=self.clock,
        )

    def num_at_once(self) -> int:
        """How many requests may go at this instant."""
        count = 0
        while self._seconds_to_wait_of_next() == 0.0:
            self._running.add(count)
            count += 1
        self._running.clear()
        return count

    def _seconds_to_wait_of_next(self) -> float | None:
        self._waiting = {99}
        try:
            return self._seconds_to_wait(99)
        finally:
            self._waiting = set()

    def refuse(self, seconds: float = 0.0) -> None:
        """One request is refused, and the server asks for so much time, which passes."""
        self.clock.now += 0.001
        self.failed(Overloaded("full", retry_after_seconds=seconds), self.clock.now)
        self.clock.now += seconds


def test_refusals_halve_the_requests_in_flight_and_then_their_lines() -> None:
    pace = Paced()
    seen = []

    for _ in range(6):
        pace.refuse()
        seen.append((pace.num_at_once(), pace.batch_lines))

    assert seen == [(2, 8), (1, 8), (1, 4), (1, 2), (1, 1), (1, 1)]


def test_a_slow_server_gets_less_at_once_too() -> None:
    pace = Paced()

    pace.failed(DeadlineExceeded("late", retry_after_seconds=0.0), pace.clock.now)

    assert pace.num_at_once() == 2


def test_what_was_sent_before_a_refusal_slows_nothing_twice() -> None:
    pace = Paced()
    started = pace.clock.now

    for _ in range(3):
        pace.refuse()
        pace.clock.now += 1.0
        pace.failed(Overloaded("full", retry_after_seconds=0.0), started)

    assert (pace.num_at_once(), pace.batch_lines) == (1, 4)


def test_answers_let_more_fly_one_by_one_and_never_more_than_given() -> None:
    pace = Paced()
    for _ in range(5):
        pace.refuse()
    seen = []

    for _ in range(40):
        pace.answered()
        seen.append(pace.num_at_once())

    assert seen == sorted(seen)
    assert seen[:4] == [2, 2, 2, 3]
    assert (seen[-1], pace.batch_lines) == (4, 8)


def test_nobody_goes_before_the_server_wants_it() -> None:
    pace = Paced()

    pace.failed(Overloaded("full", retry_after_seconds=2.5), pace.clock.now)

    assert pace._seconds_to_wait_of_next() == 2.5
    pace.clock.now += 2.5
    assert pace._seconds_to_wait_of_next() == 0.0


def test_a_server_that_says_nothing_is_asked_ever_later_but_often() -> None:
    pace = Paced(patience_seconds=1000.0)
    waits = []

    for _ in range(8):
        pace.failed(Unavailable("away"), pace.clock.now)
        waits.append(pace._seconds_to_wait_of_next() or 0.0)
        pace.clock.now += waits[-1]

    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0, 2.0])


def test_many_that_meet_the_same_outage_make_one_wait_of_it() -> None:
    pace = Paced()

    for _ in range(20):
        pace.failed(Unavailable("away"), pace.clock.now)

    assert pace._seconds_to_wait_of_next() == pytest.approx(0.2)


def test_patience_ends_after_its_time_without_an_answer() -> None:
    pace = Paced(patience_seconds=60.0)
    pace.failed(Unavailable("away"), pace.clock.now)
    pace.clock.now += 59.0
    pace.answered()  # which begins it anew

    pace.clock.now += 3600.0  # nobody asked for anything
    pace.failed(Unavailable("away"), pace.clock.now)
    pace.clock.now += 57.0
    pace.failed(Unavailable("away"), pace.clock.now)
    pace.clock.now += 4.0

    with pytest.raises(Unavailable, match="away"):
        pace.failed(Unavailable("away"), pace.clock.now)


def test_who_is_asked_to_wait_for_longer_than_that_gives_up_at_once() -> None:
    with pytest.raises(Overloaded, match="quota"):
        Paced().failed(Overloaded("quota", retry_after_seconds=61.0), 100.0)


def test_without_patience_the_first_failure_is_the_last() -> None:
    with pytest.raises(Overloaded, match="full"):
        Paced(patience_seconds=0.0).failed(Overloaded("full", retry_after_seconds=0.0), 100.0)


def test_an_outage_is_told_once_and_a_busy_server_when_it_lasts() -> None:
    pace = Paced()

    pace.refuse(5.0)
    assert pace.told == []
    pace.refuse(6.0)
    pace.refuse(1.0)
    pace.answered()
    for _ in range(3):
        pace.failed(Unavailable("away"), pace.clock.now)

    assert pace.told == [
        "RESOURCE_EXHAUSTED: full; waiting for up to 55 s",
        "UNAVAILABLE: away; waiting for up to 60 s",
    ]


def test_the_oldest_goes_first_and_a_closed_pace_lets_nobody_go() -> None:
    pace = Pace(in_flight=1, batch_lines=1, patience_seconds=60.0)
    order: list[int] = []

    def go(number: int) -> None:
        with pace.turn(number):
            order.append(number)

    with ThreadPoolExecutor(4) as pool:
        with pace.turn(0):
            waiting = [pool.submit(go, number) for number in (3, 1, 2)]
            while len(pace._waiting) < 3:
                pass
        for each in waiting:
            each.result()

        with pace.turn(0):
            late = pool.submit(go, 4)
            while not pace._waiting:
                pass
            pace.close()
        with pytest.raises(InterruptedError):
            late.result()

    assert order == [1, 2, 3]
