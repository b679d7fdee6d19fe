from pathlib import Path

import pytest

from server.errors import SettingsError
from server.gateway.command import build_parser, check, server_credentials
from tests.certificates import authority


def test_a_gateway_needs_no_flags() -> None:
    options = build_parser().parse_args([])
    check(options)

    assert (options.server, options.http_port) == ("localhost:50051", 8080)
    assert server_credentials(options) is None


def test_all_faults_are_told_at_once() -> None:
    flags = ["--tls-cert", "a", "--server-key", "b", "--server-name", "c", "--memory-mib", "1", "--http-port", "70000"]

    with pytest.raises(SettingsError) as caught:
        check(build_parser().parse_args([*flags, "--drain-delay", "nan", "--tls-client-ca", "d"]))

    assert [fault.partition(":")[0] for fault in caught.value.faults] == [
        "--tls-cert, --tls-key",
        "--server-cert, --server-key",
        "--server-cert, --server-name",
        "--memory-mib",
        "--drain-delay",
        "--http-port",
    ]


def test_files_for_the_server_are_read(tmp_path: Path) -> None:
    (tmp_path / "ca").write_bytes(authority().pem)
    good = build_parser().parse_args(["--server-ca", str(tmp_path / "ca")])
    bad = build_parser().parse_args(["--server-ca", str(tmp_path / "no"), "--server-cert", "no", "--server-key", "no"])

    assert server_credentials(good) is not None
    with pytest.raises(SettingsError) as caught:
        server_credentials(bad)
    assert len(caught.value.faults) == 3
