from server.access.tenants import ANONYMOUS, Priority, Tenant, caller
from server.access.token_bucket import TokenBucket


def test_everybody_is_anonymous_with_nothing_special() -> None:
    assert caller.get() is ANONYMOUS
    assert (ANONYMOUS.weight, ANONYMOUS.priority, ANONYMOUS.bucket) == (1.0, Priority.HIGH, None)


def test_priorities_are_ordered_by_whose_turn_comes_first() -> None:
    assert sorted(Priority) == [Priority.HIGH, Priority.NORMAL, Priority.LOW]


def test_tenants_are_equal_whatever_is_left_of_their_quota() -> None:
    assert Tenant(name="a", bucket=TokenBucket(1.0, 1.0)) == Tenant(name="a")
    assert Tenant(name="a", weight=2.0) != Tenant(name="a")
