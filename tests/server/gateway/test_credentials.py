from pathlib import Path

import pytest

from server.errors import SettingsError
from server.gateway.command import build_parser
from server.gateway.credentials import watched_credentials
from server.telemetry.metrics import Metrics
from tests.certificates import authority


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Of files with a certificate and its authority."""
    issued = authority().issue()
    contents = {"--server-ca": authority().pem, "--server-cert": issued.chain, "--server-key": issued.key}
    for flag, content in contents.items():
        (tmp_path / flag).write_bytes(content)
    return [word for flag in contents for word in (flag, str(tmp_path / flag))]


def test_without_an_authority_there_is_no_tls(metrics: Metrics) -> None:
    assert watched_credentials(build_parser().parse_args([]), metrics.access) is None


def test_what_is_good_is_taken_and_what_is_bad_is_not(metrics: Metrics, flags: list[str], tmp_path: Path) -> None:
    credentials = watched_credentials(build_parser().parse_args(flags), metrics.access)
    assert credentials is not None
    first = credentials.value
    (tmp_path / "--server-key").write_bytes(authority().issue().key)
    credentials.poll(at_once=True)
    assert credentials.value is first
    labels = {"files": "server-certificates"}
    assert metrics.registry.get_sample_value("babelserve_last_reload_successful", labels) == 0

    issued = authority().issue()
    (tmp_path / "--server-cert").write_bytes(issued.chain)
    (tmp_path / "--server-key").write_bytes(issued.key)
    credentials.poll(at_once=True)

    assert credentials.value is not first
    assert metrics.registry.get_sample_value("babelserve_last_reload_successful", labels) == 1


def test_each_fault_is_told_by_its_flag(metrics: Metrics, flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "--server-ca").write_bytes(b"none")
    (tmp_path / "--server-cert").write_bytes(b"none")
    with pytest.raises(SettingsError) as bad:
        watched_credentials(build_parser().parse_args(flags), metrics.access)
    (tmp_path / "--server-ca").unlink()
    with pytest.raises(SettingsError) as missing:
        watched_credentials(build_parser().parse_args(flags), metrics.access)

    assert [fault.partition(":")[0] for fault in bad.value.faults] == ["--server-ca", "--server-cert, --server-key"]
    assert "cannot be read" in missing.value.faults[0]
