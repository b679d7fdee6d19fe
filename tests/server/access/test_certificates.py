import pytest

from server.access.certificates import read_certificates
from server.errors import SettingsError
from tests.certificates import Authority, authority

COMMENT = "# Größe\n".encode()


def faults(chain: bytes, key: bytes, client_ca: bytes | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read_certificates(chain, key, client_ca)
    return caught.value.faults


def test_a_certificate_is_taken_with_its_end() -> None:
    issued = authority().issue()

    certificates = read_certificates(issued.chain, issued.key, None)

    assert (certificates.chain, certificates.key, certificates.client_ca) == (issued.chain, issued.key, None)
    assert certificates.expires == issued.expires


def test_a_chain_may_hold_its_authority_and_comments() -> None:
    issued, authorities = authority().issue(), COMMENT + authority().pem + Authority().pem

    certificates = read_certificates(COMMENT + issued.chain + authority().pem, issued.key, authorities)

    assert certificates.expires == issued.expires
    assert certificates.client_ca == authorities


def test_a_certificate_that_has_ended_or_not_begun_is_refused() -> None:
    past, future = authority().issue(ends=-1), authority().issue(begins=1)

    assert faults(past.chain, past.key) == ["--tls-cert: cannot be used: certificate has expired"]
    assert faults(future.chain, future.key) == ["--tls-cert: cannot be used: certificate is not yet valid"]


@pytest.mark.parametrize("spoiled", [b"", b"no PEM", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_what_is_no_pem_is_refused(spoiled: bytes) -> None:
    issued = authority().issue()

    for chain, key in ((spoiled, issued.key), (issued.chain, spoiled)):
        (fault,) = faults(chain, key)
        assert fault.startswith("--tls-cert, --tls-key: are no PEM certificate chain and its unencrypted private key: ")
    assert faults(issued.chain, issued.key, spoiled) == ["--tls-client-ca: holds no PEM certificate"]


def test_the_key_of_another_certificate_is_refused() -> None:
    (fault,) = faults(authority().issue().chain, authority().issue().key)

    assert fault.endswith(": KEY_VALUES_MISMATCH")


def test_all_faults_are_listed_at_once() -> None:
    assert len(faults(b"", b"", b"")) == 2


def test_a_private_key_is_not_shown() -> None:
    issued = authority().issue()

    assert "PRIVATE" not in repr(read_certificates(issued.chain, issued.key, None))
