from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from server.access.access import Access
from server.access.keys import hash_key
from server.errors import PermissionDenied, Unauthenticated
from server.rpc.callers import identify
from server.telemetry.access_metrics import AccessMetrics
from tests.certificates import authority

URI = b"spiffe://example.org/search"


class Context:
    """What gRPC knows of a call."""

    def __init__(self, **facts: list[bytes]) -> None:
        self._facts = facts

    def auth_context(self) -> dict[str, list[bytes]]:
        return {"transport_security_type": [b"ssl"], **self._facts}


@pytest.fixture
def access(tmp_path: Path) -> Access:
    """Asks for certificates too."""
    paths = {name: tmp_path / name for name in ("tls_cert", "tls_key", "tls_client_ca", "keys")}
    issued = authority().issue()
    paths["tls_cert"].write_bytes(issued.chain)
    paths["tls_key"].write_bytes(issued.key)
    paths["tls_client_ca"].write_bytes(authority().pem)
    paths["keys"].write_text(
        f'[tenants.billing]\nkeys = [{{ sha256 = "{hash_key("key").hex()}" }}]\n'
        f'[tenants.search]\ncommon_names = ["search"]\nuris = ["{URI.decode()}"]\n'
    )
    return Access(AccessMetrics(CollectorRegistry()), **paths)


@pytest.mark.parametrize(
    "metadata",
    [
        [("authorization", "Bearer key")],
        [("authorization", "bearer  key ")],
        [("x-api-key", "key")],
        [("x-goog-api-key", "key")],
        [("authorization", "Basic key"), ("x-api-key", "key")],
        [("other-bin", b"\xff"), ("x-api-key", "key")],
    ],
)
def test_a_key_is_read_from_any_header(access: Access, metadata: list[tuple[str, str | bytes]]) -> None:
    assert identify(access, dict(metadata), Context()).name == "billing"


@pytest.mark.parametrize(
    "metadata",
    [
        [("authorization", "Bearer ")],
        [("authorization", "Bearer Bearer key")],
        [("authorization", "Bearer no"), ("x-api-key", "key")],
        [("x-api-key", "")],
    ],
)
def test_a_wrong_key_is_refused_whatever_the_certificate_names(
    access: Access, metadata: list[tuple[str, str | bytes]]
) -> None:
    with pytest.raises(Unauthenticated):
        identify(access, dict(metadata), Context(x509_common_name=[b"search"]))


@pytest.mark.parametrize("facts", [{"x509_common_name": [b"search"]}, {"x509_common_name": [b""], "peer_uri": [URI]}])
def test_a_certificate_is_read_from_the_handshake(access: Access, facts: dict[str, list[bytes]]) -> None:
    assert identify(access, {}, Context(**facts)).name == "search"


@pytest.mark.parametrize("facts", [{}, {"x509_common_name": [b"\xff"]}, {"peer_dns": [b"search"]}])
def test_a_certificate_that_names_nobody_is_refused(access: Access, facts: dict[str, list[bytes]]) -> None:
    with pytest.raises(PermissionDenied):
        identify(access, {}, Context(**facts))
