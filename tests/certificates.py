"""Authorities and certificates for tests, made as they are needed."""

import datetime as dt
import functools
import ipaddress
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)
LOCALHOST = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))


class Issued:
    """A certificate and its key, both PEM."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self.expires = certificate.not_valid_after_utc.timestamp()
        self.chain = certificate.public_bytes(serialization.Encoding.PEM)
        self.key = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "authority") -> None:
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.pem = self.issue(name, (), is_authority=True).chain

    def issue(
        self,
        common_name: str = "server",
        names: Sequence[x509.GeneralName] = LOCALHOST,
        *,
        begins: int = -2,
        ends: int = 2,
        is_authority: bool = False,
    ) -> Issued:
        """Returns a certificate; it begins and ends so many days from today on."""
        key = self._key if is_authority else ec.generate_private_key(ec.SECP256R1())
        today = dt.datetime.now(dt.UTC).replace(microsecond=0)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(today + begins * DAY)
            .not_valid_after(today + ends * DAY)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            # Python 3.13 wants these three by RFC 5280.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(_usage(is_authority=is_authority), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Issued(builder.sign(self._key, hashes.SHA256()), key)


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


@functools.cache
def authority() -> Authority:
    """One for all tests that need no second."""
    return Authority()
