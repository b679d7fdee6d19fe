"""What a request takes from its tenant's quota."""

from server.access.tenants import Tenant
from server.errors import Overloaded

_KNOWN_SECONDS = 0.1  # for which a used-up quota refuses the tenant's next calls too; they may cost less


def charge(tenant: Tenant, cost: float) -> None:
    """Takes a request's cost, in seconds of one lane, from the quota; 0 to find out whether it is used up.

    Raises:
        Overloaded: the quota is used up.
    """
    wait = tenant.bucket.take(cost) if tenant.bucket else 0.0
    if wait > 0:
        raise Overloaded(f"the quota of tenant {tenant.name} is used up", "quota", wait, min(wait, _KNOWN_SECONDS))


def give_back(tenant: Tenant, cost: float) -> None:
    """Gives back the cost of a request that the engine did not take."""
    if tenant.bucket:
        tenant.bucket.give_back(cost)
