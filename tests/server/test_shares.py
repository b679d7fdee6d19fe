"""Fair shares, by a clock that stands unless it is moved."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.shares import Shares, fair_level
from tests.fakes import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def shares(clock: FakeClock) -> Shares[str]:
    return Shares(1.0, clock)


def test_one_that_is_alone_has_all(shares: Shares[str]) -> None:
    assert shares.share("a", 1.0) == 1.0
    shares.ask("a", 1.0)
    assert shares.share("a", 1.0) == 1.0


def test_shares_are_by_weight(shares: Shares[str]) -> None:
    shares.ask("a", 3.0)
    shares.ask("b", 1.0)

    assert (shares.share("a", 3.0), shares.share("b", 1.0)) == (0.75, 0.25)
    assert shares.share("new", 4.0) == 0.5


def test_a_name_keeps_its_share_for_a_while_after_its_last_request(shares: Shares[str], clock: FakeClock) -> None:
    shares.ask("a", 1.0)
    shares.ask("b", 1.0)
    clock.now = 0.9
    shares.ask("a", 1.0)
    assert shares.share("a", 1.0) == 0.5
    clock.now = 1.1

    assert shares.share("a", 1.0) == 1.0
    assert list(shares.active()) == [("a", 1.0, 0)]


def test_a_name_keeps_its_share_as_long_as_it_holds_anything(shares: Shares[str], clock: FakeClock) -> None:
    shares.hold("b", 1.0, +1)
    shares.hold("b", 1.0, +1)
    clock.now = 10.0
    shares.ask("a", 1.0)
    shares.hold("b", 1.0, -1)
    assert shares.share("a", 1.0) == 0.5

    shares.hold("b", 1.0, -1)

    assert shares.share("a", 1.0) == 1.0


def test_names_that_have_gone_take_no_memory(shares: Shares[str], clock: FakeClock) -> None:
    for number in range(1000):
        clock.now = number
        shares.ask(f"name {number}", 1.0)

    assert len(shares._claims) <= 2


def test_names_that_have_gone_take_no_memory_behind_one_that_holds_something(
    shares: Shares[str], clock: FakeClock
) -> None:
    shares.ask("open", 1.0)
    shares.hold("open", 1.0, +1)
    for number in range(1, 1000):
        clock.now = number
        shares.ask(f"name {number}", 1.0)

    assert len(shares._claims) <= 3
    assert set(shares.active()) == {("open", 1.0, 1), ("name 998", 1.0, 0), ("name 999", 1.0, 0)}
    shares.hold("open", 1.0, -1)
    clock.now += 10.0
    shares.ask("a", 1.0)
    assert [*shares._claims] == ["a"]


def test_the_share_of_one_looks_at_no_other(shares: Shares[str]) -> None:
    seen: list[float] = []

    class Weight(float):
        """Notes that it is added."""

        def __radd__(self, other: float) -> float:
            seen.append(other)
            return other + float(self)

    for number in range(100):
        shares.ask(f"name {number}", Weight(1.0))
    seen.clear()

    assert shares.share("name 7", 1.0) == 0.01
    assert len(seen) < 5


@pytest.mark.parametrize(
    ("capacity", "demands", "level"),
    [
        (10.0, [], math.inf),
        (10.0, [(4.0, 1.0), (6.0, 1.0)], math.inf),
        (10.0, [(100.0, 1.0)], 10.0),
        (10.0, [(2.0, 1.0), (100.0, 1.0)], 8.0),
        (10.0, [(100.0, 1.0), (100.0, 1.0)], 5.0),
        (12.0, [(100.0, 2.0), (100.0, 1.0)], 4.0),
        (12.0, [(0.0, 5.0), (1.0, 1.0), (100.0, 1.0)], 11.0),
    ],
)
def test_the_level_fills_the_capacity(capacity: float, demands: list[tuple[float, float]], level: float) -> None:
    assert fair_level(capacity, demands) == pytest.approx(level)


@given(
    st.floats(0.1, 1000.0),
    st.lists(st.tuples(st.floats(0.0, 1000.0), st.floats(0.1, 10.0)), min_size=1, max_size=8),
)
def test_all_of_a_scarce_capacity_is_shared_out_and_no_more(
    capacity: float, demands: list[tuple[float, float]]
) -> None:
    level = fair_level(capacity, demands)
    given_out = sum(min(asked, level * weight) for asked, weight in demands)

    assert given_out == pytest.approx(min(capacity, sum(asked for asked, _ in demands)), rel=1e-6, abs=1e-6)
