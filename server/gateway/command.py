"""The flags of `babelserve-gateway`."""

import argparse
from pathlib import Path

import shtab

from server.errors import SettingsError
from server.settings.command_line import Parser, host_faults, origin_faults, refuse_dashes


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser. Faults are SettingsError."""
    parser = Parser(
        prog="babelserve-gateway",
        description="Answers over HTTP, as `babelserve --http-port` does, and asks a server over gRPC.",
        epilog="Exit codes: 0 stopped by a signal, 2 cannot start.",
    )
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    add = parser.add_argument
    add("--server", default="localhost:50051", metavar="HOST:PORT", help="address of the server (default: %(default)s)")
    add("--server-ca", type=Path, metavar="FILE", help="speak TLS, and trust a server that these authorities vouch for")
    add(
        "--server-cert",
        type=Path,
        metavar="FILE",
        help="the gateway's certificate chain, for a server that asks for one",
    )
    add("--server-key", type=Path, metavar="FILE", help="private key of that")
    add("--server-name", metavar="NAME", help="name in the server's certificate, where it is not that of its address")
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--http-port", type=int, default=8080, metavar="PORT", help="port of HTTP; 0 takes a free one (default: 8080)")
    add("--http-cors", default="", metavar="ORIGINS", help="origins of web pages that may call, with commas; * for all")
    add(
        "--metrics-port", type=int, default=9092, metavar="PORT", help="port of the metrics page (default: %(default)s)"
    )
    add("--tls-cert", type=Path, metavar="FILE", help="certificate chain that callers see; with it, HTTP is TLS alone")
    add("--tls-key", type=Path, metavar="FILE", help="private key of that")
    add(
        "--tls-client-ca",
        type=Path,
        metavar="FILE",
        help="let in only callers with certificates of these authorities",
    )
    add("--max-connections", type=int, default=1000, metavar="N", help="more are answered 503 (default: %(default)s)")
    add("--memory-mib", type=int, default=256, metavar="MIB", help="memory for requests (default: %(default)s)")
    add(
        "--drain-delay",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="after SIGTERM, take requests for so long",
    )
    add(
        "--drain-timeout",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="longest time that running calls are then given to finish",
    )
    add(
        "--log-level",
        default="info",
        choices=["debug", "info", "warning", "error"],
        help="lowest level (default: info)",
    )
    return parser


def check(options: argparse.Namespace) -> None:
    """Checks that flags fit together. Raises SettingsError with all faults."""
    refuse_dashes(options)
    faults = [*host_faults(options.host), *origin_faults(options.http_cors)]
    if not options.server or not options.server.isprintable():
        faults.append(f"--server: must be HOST:PORT, not {options.server!r:.80}")
    for first, second in (("tls_cert", "tls_key"), ("server_cert", "server_key")):
        if (getattr(options, first) is None) != (getattr(options, second) is None):
            faults.append(f"--{first}, --{second}: must be given together".replace("_", "-"))
    if options.server_ca is None and (options.server_cert or options.server_name):
        faults.append("--server-cert, --server-name: need --server-ca")
    if options.tls_client_ca and not options.tls_cert:
        faults.append("--tls-client-ca: needs --tls-cert")
    for name, least in (("max_connections", 1), ("memory_mib", 32), ("drain_delay", 0), ("drain_timeout", 0)):
        if not getattr(options, name) >= least:
            faults.append(f"--{name.replace('_', '-')}: must be at least {least}, not {getattr(options, name)}")
    faults += [
        f"--{name.replace('_', '-')}: must be 0 to 65535, not {getattr(options, name)}"
        for name in ("http_port", "metrics_port")
        if not 0 <= getattr(options, name) <= 65535
    ]
    if faults:
        raise SettingsError(faults)
