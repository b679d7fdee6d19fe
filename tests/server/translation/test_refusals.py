"""What refusals tell of the next calls, with a clock by hand."""

import math

import pytest

from server.access.tenants import ANONYMOUS, Priority, Tenant
from server.errors import Overloaded
from server.translation.refusals import Refusals
from tests.fakes import FakeClock

BILLING = Tenant(name="billing")
DEADLINE = 102.0  # of the request that was refused at 100


@pytest.fixture
def clock() -> FakeClock:
    clock = FakeClock()
    clock.now = 100.0
    return clock


@pytest.fixture
def refusals(clock: FakeClock) -> Refusals:
    return Refusals(clock)


def late(retry: float = 0.5, lasts: float = 0.2) -> Overloaded:
    return Overloaded("the answer would take about 2.5 s", "deadline", retry, lasts)


def is_read(refusals: Refusals, tenant: Tenant = BILLING, deadline: float = DEADLINE) -> bool:
    try:
        refusals.check(tenant, deadline)
    except Overloaded:
        return False
    return True


def test_the_like_of_what_was_refused_is_refused_with_the_rest_of_its_wait(
    refusals: Refusals, clock: FakeClock
) -> None:
    refusals.note(BILLING, Priority.NORMAL, DEADLINE, late())
    clock.now += 0.1

    with pytest.raises(Overloaded, match=r"the answer would take about 2\.5 s") as refusal:
        refusals.check(BILLING, DEADLINE + 0.1)

    assert refusal.value.reason == "deadline"
    assert refusal.value.retry_after_seconds == pytest.approx(0.4)
    assert refusal.value.lasts_seconds == 0  # it teaches nothing that was not known


def test_a_refusal_is_forgotten_by_itself(refusals: Refusals, clock: FakeClock) -> None:
    refusals.note(BILLING, Priority.NORMAL, DEADLINE, late())
    clock.now += 0.2

    assert is_read(refusals, deadline=DEADLINE + 0.2)


def test_what_is_due_sooner_or_waits_long_enough_is_read(refusals: Refusals) -> None:
    refusals.note(BILLING, Priority.NORMAL, DEADLINE, late(retry=0.5))

    deadlines = (DEADLINE - 0.01, DEADLINE, DEADLINE + 0.49, DEADLINE + 0.51, math.inf)
    assert [is_read(refusals, deadline=each) for each in deadlines] == [True, False, False, True, True]


def test_no_tenant_is_refused_for_another(refusals: Refusals) -> None:
    refusals.note(BILLING, Priority.NORMAL, DEADLINE, late())

    assert is_read(refusals, Tenant(name="search"))


def test_of_calls_that_may_have_a_better_priority_a_few_are_read(refusals: Refusals, clock: FakeClock) -> None:
    """Whoever says no name may ask for HIGH, and asks for NORMAL: all of a flood would be read in vain."""
    refusals.note(ANONYMOUS, Priority.NORMAL, DEADLINE, late())

    read = []
    for _ in range(100):
        clock.now += 0.001
        read.append(is_read(refusals, ANONYMOUS))

    assert read[0]
    assert 5 <= sum(read) <= 20


def test_what_can_have_no_better_priority_is_not_read(refusals: Refusals) -> None:
    high = Tenant(name="high", priority=Priority.HIGH)
    refusals.note(BILLING, Priority.NORMAL, DEADLINE, late())
    refusals.note(high, Priority.HIGH, DEADLINE, late())

    assert not any(is_read(refusals, tenant) for tenant in (BILLING, high))


def test_a_refusal_of_a_worse_priority_does_not_replace_one_that_lasts(refusals: Refusals, clock: FakeClock) -> None:
    refusals.note(BILLING, Priority.NORMAL, DEADLINE, late())
    refusals.note(BILLING, Priority.LOW, DEADLINE, late())
    assert not any(is_read(refusals) for _ in range(3))

    clock.now += 0.2
    refusals.note(BILLING, Priority.LOW, DEADLINE, late())
    assert is_read(refusals)


def test_refusals_of_different_deadlines_add_up_while_they_last(refusals: Refusals, clock: FakeClock) -> None:
    """Callers with two deadlines would otherwise make each other's calls be read."""
    refusals.note(BILLING, Priority.NORMAL, 101.0, late(retry=0.05))
    refusals.note(BILLING, Priority.NORMAL, 110.0, late(retry=0.05))
    assert not any(is_read(refusals, deadline=each) for each in (101.0, 105.0, 110.05))

    clock.now += 0.2
    refusals.note(BILLING, Priority.NORMAL, 110.0, late(retry=0.05))
    assert is_read(refusals, deadline=101.0)


def test_a_cause_that_is_not_known_to_last_refuses_nothing_else(refusals: Refusals) -> None:
    refusals.note(BILLING, Priority.NORMAL, DEADLINE, late(lasts=0.0))

    assert is_read(refusals)


@pytest.mark.parametrize("reason", ["sentences", "quota"])
def test_other_limits_refuse_whatever_the_deadline(refusals: Refusals, reason: str) -> None:
    refusals.note(BILLING, Priority.NORMAL, DEADLINE, Overloaded("full", reason, 1.0, 0.1))

    assert not any(is_read(refusals, deadline=each) for each in (100.1, DEADLINE + 60, math.inf))


def test_nobody_is_told_to_come_back_at_once(refusals: Refusals, clock: FakeClock) -> None:
    refusals.note(BILLING, Priority.NORMAL, DEADLINE, late(retry=0.2, lasts=0.2))
    clock.now += 0.19

    with pytest.raises(Overloaded) as refusal:
        refusals.check(BILLING, DEADLINE + 0.19)

    assert refusal.value.retry_after_seconds == 0.05
