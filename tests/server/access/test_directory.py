import pytest

from server.access.directory import Account, Directory, PeerNames
from server.access.keys import KeyHash, hash_key
from server.access.tenants import Tenant
from server.access.token_bucket import TokenBucket
from server.errors import PermissionDenied, Unauthenticated

BILLING = Tenant(name="billing")
SEARCH = Tenant(name="search", weight=2.0)
SPIFFE = "spiffe://example.org/search"


@pytest.fixture
def directory() -> Directory:
    """At the instant 100."""
    keys = (KeyHash(digest=hash_key("old"), expires=100.0), KeyHash(digest=hash_key("new"), expires=100.1))
    accounts = [
        Account(tenant=BILLING, keys=keys, common_names=("billing",)),
        Account(tenant=SEARCH, keys=(KeyHash(digest=hash_key("key")),), common_names=("search",), uris=(SPIFFE,)),
    ]
    return Directory(accounts, clock=lambda: 100.0)


def test_each_of_a_tenants_keys_is_the_tenant(directory: Directory) -> None:
    assert directory.of_key("new") is BILLING
    assert directory.of_key("key") is SEARCH


@pytest.mark.parametrize(
    ("key", "reason"), [("old", "has expired"), ("", "not known"), ("ke", "not known"), ("key ", "not known")]
)
def test_any_other_key_is_refused(directory: Directory, key: str, reason: str) -> None:
    with pytest.raises(Unauthenticated, match=reason):
        directory.of_key(key)


def test_a_key_is_looked_up_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []

    class Digest(bytes):
        """Notes what it is compared with."""

        __hash__ = bytes.__hash__

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return bytes.__eq__(self, other)

    keys = tuple(KeyHash(digest=Digest(hash_key(str(number)))) for number in range(100))
    many = Directory([Account(tenant=BILLING, keys=keys)])
    compared.clear()

    assert many.of_key("7") is BILLING

    assert len(compared) == 1


@pytest.mark.parametrize(
    ("names", "tenant"),
    [
        (PeerNames(common_name="billing"), BILLING),
        (PeerNames(common_name="", uris=("https://example.org", SPIFFE)), SEARCH),
        (PeerNames(common_name="billing", uris=(SPIFFE,)), SEARCH),
    ],
)
def test_a_certificate_names_a_tenant_by_uri_or_else_by_common_name(
    directory: Directory, names: PeerNames, tenant: Tenant
) -> None:
    assert directory.of_certificate(names) is tenant


@pytest.mark.parametrize(
    "names", [PeerNames(common_name=""), PeerNames(common_name=SPIFFE), PeerNames(common_name="x", uris=("billing",))]
)
def test_a_certificate_that_names_nobody_is_refused(directory: Directory, names: PeerNames) -> None:
    with pytest.raises(PermissionDenied, match="names no tenant"):
        directory.of_certificate(names)


def test_a_successor_keeps_the_buckets_of_those_whose_quota_is_as_it_was() -> None:
    def of(**quotas: float | None) -> Directory:
        return Directory(
            [
                Account(tenant=Tenant(name=name, weight=rate or 1.0, bucket=TokenBucket(rate, 1.0) if rate else None))
                for name, rate in quotas.items()
            ]
        )

    old, new = of(same=1.0, faster=1.0, freed=1.0), of(same=1.0, faster=2.0, freed=None, late=1.0)

    tenants = {each.tenant.name: each.tenant for each in new.succeeding(old).accounts}

    before = {each.tenant.name: each.tenant.bucket for each in old.accounts}
    assert tenants["same"].bucket is before["same"]
    assert tenants["faster"].bucket is not before["faster"]
    assert (tenants["faster"].weight, tenants["freed"].bucket) == (2.0, None)
    assert tenants["late"].bucket is not None
