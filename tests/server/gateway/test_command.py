import pytest

from server.errors import SettingsError
from server.gateway.command import build_parser, check


def test_a_gateway_needs_no_flags() -> None:
    options = build_parser().parse_args([])
    check(options)

    assert (options.server, options.http_port) == ("localhost:50051", 8080)


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["--http-port", "x"], "argument --http-port: invalid int value: 'x'"),
        (["--server", ""], "--server: must be HOST:PORT, not ''"),
        (["--server", "a\x1b[2J"], r"--server: must be HOST:PORT, not 'a\x1b[2J'"),
        (["--host", "\udcff"], r"--host: must be an address or the name of a host, not '\udcff'"),
    ],
)
def test_a_wrong_flag_is_told_in_a_line(flags: list[str], fault: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check(build_parser().parse_args(flags))

    assert caught.value.faults == [fault]


def test_two_dashes_are_no_port() -> None:
    with pytest.raises(SettingsError) as caught:
        check(build_parser().parse_args(["--http-port=--"]))

    (fault,) = caught.value.faults  # an older Python makes an empty list of them, and a later one takes them for a text
    assert fault in ("--http-port: -- is no value", "argument --http-port: invalid int value: '--'")


def test_all_faults_are_told_at_once() -> None:
    flags = ["--tls-cert", "a", "--server-key", "b", "--server-name", "c", "--memory-mib", "1", "--http-port", "70000"]

    with pytest.raises(SettingsError) as caught:
        check(build_parser().parse_args([*flags, "--drain-delay", "nan", "--tls-client-ca", "d", "--http-cors=x"]))

    assert [fault.partition(":")[0] for fault in caught.value.faults] == [
        "--http-cors",
        "--tls-cert, --tls-key",
        "--server-cert, --server-key",
        "--server-cert, --server-name",
        "--memory-mib",
        "--drain-delay",
        "--http-port",
    ]
