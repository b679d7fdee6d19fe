from contextvars import Context

import pytest

from server.access.tenants import ANONYMOUS, Priority, Tenant, caller
from server.access.token_bucket import TokenBucket
from server.errors import Overloaded


def test_everybody_is_anonymous_with_nothing_special() -> None:
    assert Context().run(caller.get) is ANONYMOUS  # other tests have called as somebody
    assert (ANONYMOUS.weight, ANONYMOUS.priority, ANONYMOUS.bucket) == (1.0, Priority.HIGH, None)


def test_priorities_are_ordered_by_whose_turn_comes_first() -> None:
    assert sorted(Priority) == [Priority.HIGH, Priority.NORMAL, Priority.LOW]


def test_tenants_are_equal_whatever_is_left_of_their_quota() -> None:
    assert Tenant(name="a", bucket=TokenBucket(1.0, 1.0)) == Tenant(name="a")
    assert Tenant(name="a", weight=2.0) != Tenant(name="a")


def test_a_tenant_in_debt_is_refused_until_it_has_paid() -> None:
    tenant = Tenant(name="billing", bucket=TokenBucket(rate=0.1, burst=1.0))
    tenant.charge(3.0)

    with pytest.raises(Overloaded, match="the quota of tenant billing is used up") as refusal:
        tenant.charge(0.0)

    assert refusal.value.reason == "quota"
    assert refusal.value.retry_after_seconds == pytest.approx(20, abs=1)
    tenant.give_back(3.0)
    tenant.charge(0.0)


def test_without_a_quota_everything_is_free() -> None:
    ANONYMOUS.charge(1e9)
    ANONYMOUS.give_back(1.0)
