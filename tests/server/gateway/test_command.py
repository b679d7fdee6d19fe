import pytest

from server.errors import SettingsError
from server.gateway.command import build_parser, check


def test_a_gateway_needs_no_flags() -> None:
    options = build_parser().parse_args([])
    check(options)

    assert (options.server, options.http_port) == ("localhost:50051", 8080)


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
