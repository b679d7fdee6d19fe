"""The server's certificate: read, and proven by a handshake, before anybody depends on it.

The standard library reads no certificate by itself, but its TLS does: the server shakes hands with a client of its own,
in memory, that trusts this certificate alone. That finds what a real client would find, and needs no other library.
"""

import contextlib
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field

from server.errors import SettingsError

_FLIGHTS = 4  # of a handshake; TLS 1.3 takes three, ours and theirs counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """What the server shows, and whom it trusts; all PEM.

    Attributes:
        chain: its certificate, then those between that and its authority.
        key: the private key of the first.
        client_ca: the authorities of clients' certificates; None if clients need none.
        expires: instant of `time.time` at which the first ends.
    """

    chain: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None
    expires: float


def read_certificates(chain: bytes, key: bytes, client_ca: bytes | None) -> Certificates:
    """Checks that a chain, its key and the clients' authorities can be used.

    Raises:
        SettingsError: each of them that is no PEM; a key that is another's; a certificate that is not valid today.
    """
    faults = []
    expires = 0.0
    try:
        expires = _expiry(chain, key)
    except ssl.SSLCertVerificationError as error:
        faults.append(f"--tls-cert: cannot be used: {error.verify_message}")
    except ssl.SSLError as error:
        what = "are no PEM certificate chain and its unencrypted private key"
        faults.append(f"--tls-cert, --tls-key: {what}: {error.reason}")
    try:
        if client_ca is not None:
            _trust(_context(ssl.PROTOCOL_TLS_CLIENT), client_ca)
    except (ssl.SSLError, ValueError):  # the latter if there is nothing at all
        faults.append("--tls-client-ca: holds no PEM certificate")
    if faults:
        raise SettingsError(faults)
    return Certificates(chain=chain, key=key, client_ca=client_ca, expires=expires)


def prove_client(authorities: bytes, chain: bytes | None, key: bytes | None) -> None:
    """Checks that a client can use what it trusts and shows; all PEM.

    Args:
        authorities: of servers.
        chain: the client's certificate, then those between that and its authority; None for none.
        key: the private key of the first; None with none.

    Raises:
        SettingsError: each of them that is no PEM; a key that is another's.
    """
    context, faults = _context(ssl.PROTOCOL_TLS_CLIENT), []
    try:
        _trust(context, authorities)
    except (ssl.SSLError, ValueError):
        faults.append("--server-ca: holds no PEM certificate")
    try:
        if chain is not None and key is not None:
            with _in_memory(chain) as chain_path, _in_memory(key) as key_path:
                context.load_cert_chain(chain_path, key_path, password="")
    except ssl.SSLError as error:
        what = "are no PEM certificate chain and its unencrypted private key"
        faults.append(f"--server-cert, --server-key: {what}: {error.reason}")
    if faults:
        raise SettingsError(faults)


def server_context(certificates: Certificates) -> ssl.SSLContext:
    """Returns what a server of the standard library needs to show these certificates, and to ask clients for theirs."""
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with _in_memory(certificates.chain) as chain_path, _in_memory(certificates.key) as key_path:
        context.load_cert_chain(chain_path, key_path, password="")
    if certificates.client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        _trust(context, certificates.client_ca)
    return context


def _expiry(chain: bytes, key: bytes) -> float:
    """Shakes hands with itself; returns the instant at which the certificate ends."""
    server, client = _context(ssl.PROTOCOL_TLS_SERVER), _context(ssl.PROTOCOL_TLS_CLIENT)
    with _in_memory(chain) as chain_path, _in_memory(key) as key_path:
        # The password keeps OpenSSL from asking the terminal for one.
        server.load_cert_chain(chain_path, key_path, password="")
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # trust it although it is no authority
    _trust(client, chain)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    callee = server.wrap_bio(to_server, to_client, server_side=True)
    caller = client.wrap_bio(to_client, to_server)
    for _ in range(_FLIGHTS):
        for side in (caller, callee):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    shown = caller.getpeercert()
    assert shown is not None
    return float(ssl.cert_time_to_seconds(str(shown["notAfter"])))


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.check_hostname = False  # which names clients call it by is theirs to know
    return context


def _trust(context: ssl.SSLContext, certificates: bytes) -> None:
    context.load_verify_locations(cadata=certificates.decode("ascii", errors="ignore"))  # what is no PEM is free text


@contextlib.contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Yields a path to content that `ssl` wants to read from a file; it never touches a disk."""
    descriptor = os.memfd_create("pem")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
