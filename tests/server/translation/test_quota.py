import pytest

from server.access.tenants import ANONYMOUS, Tenant
from server.access.token_bucket import TokenBucket
from server.errors import Overloaded
from server.translation.quota import charge, give_back


def test_a_tenant_in_debt_is_refused_until_it_has_paid() -> None:
    tenant = Tenant(name="billing", bucket=TokenBucket(rate=0.1, burst=1.0))
    charge(tenant, 3.0)

    with pytest.raises(Overloaded, match="the quota of tenant billing is used up") as refusal:
        charge(tenant, 0.0)

    assert refusal.value.reason == "quota"
    assert refusal.value.retry_after_seconds == pytest.approx(20, abs=1)
    give_back(tenant, 3.0)
    charge(tenant, 0.0)


def test_without_a_quota_everything_is_free() -> None:
    charge(ANONYMOUS, 1e9)
    give_back(ANONYMOUS, 1.0)
