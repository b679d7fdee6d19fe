"""Finds out who makes a call, from its metadata and its TLS handshake."""

from collections.abc import Mapping
from typing import Any

from server.access.access import Access
from server.access.directory import PeerNames
from server.access.keys import key_of
from server.access.tenants import Tenant


def identify(access: Access, metadata: Mapping[str, str | bytes], context: Any) -> Tenant:
    """Returns the tenant of a call, by the key in `authorization: Bearer KEY` or `x-api-key`, or by the certificate.

    Args:
        access: knows the tenants.
        metadata: of the call. It is passed in because asking the context for it takes time.
        context: of the call.

    Raises:
        Unauthenticated: no tenant has the key or the certificate.
        PermissionDenied: the tenant may not call.
    """
    if access.is_open:
        return access.identify(None, None)
    return access.identify(key_of(metadata), _peer_names(context) if access.asks_for_certificates else None)


def _peer_names(context: Any) -> PeerNames:
    facts = {
        name: [value.decode(errors="replace") for value in values] for name, values in context.auth_context().items()
    }
    (common_name,) = facts.get("x509_common_name") or [""]
    return PeerNames(common_name=common_name, uris=tuple(facts.get("peer_uri", ())))
