"""Doors that refusals close, with a clock by hand."""

import math

import pytest

from server.access.tenants import ANONYMOUS, Priority, Tenant
from server.errors import Overloaded
from server.translation.doors import Doors
from tests.fakes import FakeClock

BILLING = Tenant(name="billing")
DEADLINE = 102.0  # of the request that was refused at 100


@pytest.fixture
def clock() -> FakeClock:
    clock = FakeClock()
    clock.now = 100.0
    return clock


@pytest.fixture
def doors(clock: FakeClock) -> Doors:
    return Doors(clock)


def late(retry: float = 0.5, lasts: float = 0.2) -> Overloaded:
    return Overloaded("the answer would take about 2.5 s", "deadline", retry, lasts)


def is_open(doors: Doors, tenant: Tenant = BILLING, deadline: float = DEADLINE) -> bool:
    try:
        doors.check(tenant, deadline)
    except Overloaded:
        return False
    return True


def test_the_like_of_what_was_refused_is_refused_with_the_rest_of_its_wait(doors: Doors, clock: FakeClock) -> None:
    doors.close(BILLING, Priority.NORMAL, DEADLINE, late())
    clock.now += 0.1

    with pytest.raises(Overloaded, match=r"the answer would take about 2\.5 s") as refusal:
        doors.check(BILLING, DEADLINE + 0.1)

    assert refusal.value.reason == "deadline"
    assert refusal.value.retry_after_seconds == pytest.approx(0.4)
    assert refusal.value.lasts_seconds == 0  # it teaches nothing that was not known


def test_a_door_opens_by_itself(doors: Doors, clock: FakeClock) -> None:
    doors.close(BILLING, Priority.NORMAL, DEADLINE, late())
    clock.now += 0.2

    assert is_open(doors, deadline=DEADLINE + 0.2)


def test_who_is_due_sooner_or_waits_long_enough_is_let_in(doors: Doors) -> None:
    doors.close(BILLING, Priority.NORMAL, DEADLINE, late(retry=0.5))

    deadlines = (DEADLINE - 0.01, DEADLINE, DEADLINE + 0.49, DEADLINE + 0.51, math.inf)
    assert [is_open(doors, deadline=each) for each in deadlines] == [True, False, False, True, True]


def test_no_tenant_closes_anothers_door(doors: Doors) -> None:
    doors.close(BILLING, Priority.NORMAL, DEADLINE, late())

    assert is_open(doors, Tenant(name="search"))


def test_who_may_ask_for_a_better_priority_than_was_refused_is_let_in(doors: Doors) -> None:
    high = Tenant(name="high", priority=Priority.HIGH)
    for tenant in (BILLING, high, ANONYMOUS):
        doors.close(tenant, Priority.LOW, DEADLINE, late())
    assert all(is_open(doors, tenant) for tenant in (BILLING, high, ANONYMOUS))

    for tenant in (BILLING, high):
        doors.close(tenant, Priority.NORMAL, DEADLINE, late())
    assert [is_open(doors, tenant) for tenant in (BILLING, high)] == [False, True]

    doors.close(high, Priority.HIGH, DEADLINE, late())
    assert not is_open(doors, high)


def test_a_cause_that_is_not_known_to_last_closes_nothing(doors: Doors) -> None:
    doors.close(BILLING, Priority.NORMAL, DEADLINE, late(lasts=0.0))

    assert is_open(doors)


@pytest.mark.parametrize("reason", ["sentences", "quota"])
def test_other_limits_refuse_whatever_the_deadline(doors: Doors, reason: str) -> None:
    doors.close(BILLING, Priority.NORMAL, DEADLINE, Overloaded("full", reason, 1.0, 0.1))

    assert not any(is_open(doors, deadline=each) for each in (100.1, DEADLINE + 60, math.inf))


def test_nobody_is_told_to_come_back_at_once(doors: Doors, clock: FakeClock) -> None:
    doors.close(BILLING, Priority.NORMAL, DEADLINE, late(retry=0.2, lasts=0.2))
    clock.now += 0.19

    with pytest.raises(Overloaded) as refusal:
        doors.check(BILLING, DEADLINE + 0.19)

    assert refusal.value.retry_after_seconds == 0.05
