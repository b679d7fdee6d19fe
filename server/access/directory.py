"""The tenants of a server, and how to tell who is who."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from server.access.keys import KeyHash, hash_key
from server.access.tenants import Tenant
from server.errors import PermissionDenied, Unauthenticated


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A tenant, and what proves that somebody is it: any of its keys, or a certificate with any of its names."""

    tenant: Tenant
    keys: tuple[KeyHash, ...] = ()
    common_names: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerNames:
    """Of a client certificate that the handshake has verified: the subject's common name, the alternative URIs."""

    common_name: str
    uris: tuple[str, ...] = ()


class Directory:
    """All accounts.

    Args:
        accounts: no name, key or certificate name twice.
        clock: gives the instant that expiry is compared with.
    """

    def __init__(self, accounts: Sequence[Account], clock: Callable[[], float] = time.time) -> None:
        self.accounts = tuple(accounts)
        self._clock = clock
        self._keys = {key.digest: (key, each.tenant) for each in accounts for key in each.keys}
        self._common_names = {name: each.tenant for each in accounts for name in each.common_names}
        self._uris = {uri: each.tenant for each in accounts for uri in each.uris}

    def of_key(self, key: str) -> Tenant:
        """Returns a key's tenant.

        It is looked up by its hash. What the time of that tells of a hash helps nobody: it leads to no key.

        Raises:
            Unauthenticated: nobody has the key, or it has expired.
        """
        found = self._keys.get(hash_key(key))
        if found is None:
            raise Unauthenticated("the API key is not known here")
        known, tenant = found
        if self._clock() >= known.expires:
            raise Unauthenticated("the API key has expired")
        return tenant

    def of_certificate(self, names: PeerNames) -> Tenant:
        """Returns the tenant that a certificate names, by URI or else by common name.

        Raises:
            PermissionDenied: it names none.
        """
        named = [self._uris[uri] for uri in names.uris if uri in self._uris]
        named += [self._common_names[name] for name in (names.common_name,) if name in self._common_names]
        if not named:
            raise PermissionDenied("the client certificate names no tenant of this server")
        return named[0]

    def succeeding(self, previous: "Directory") -> "Directory":
        """Returns this directory, in which tenants whose quota is as it was go on with the bucket that they had."""
        buckets = {each.tenant.name: each.tenant.bucket for each in previous.accounts}
        accounts = []
        for each in self.accounts:
            new, old = each.tenant.bucket, buckets.get(each.tenant.name)
            if new and old and (new.rate, new.burst) == (old.rate, old.burst):
                each = replace(each, tenant=replace(each.tenant, bucket=old))
            accounts.append(each)
        return Directory(accounts, self._clock)
