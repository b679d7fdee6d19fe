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


def test_whoever_may_ask_for_a_better_priority_than_was_refused_is_read(refusals: Refusals) -> None:
    high = Tenant(name="high", priority=Priority.HIGH)
    for tenant in (BILLING, high, ANONYMOUS):
        refusals.note(tenant, Priority.LOW, DEADLINE, late())
    assert all(is_read(refusals, tenant) for tenant in (BILLING, high, ANONYMOUS))

    for tenant in (BILLING, high):
        refusals.note(tenant, Priority.NORMAL, DEADLINE, late())
    assert [is_read(refusals, tenant) for tenant in (BILLING, high)] == [False, True]

    refusals.note(high, Priority.HIGH, DEADLINE, late())
    assert not is_read(refusals, high)


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
