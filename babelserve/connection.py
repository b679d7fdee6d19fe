"""The flags that every command has which calls a server: where it is, how to reach it, and the command's version."""

import argparse
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from babelserve.channel import TlsOptions, call_metadata
from babelserve.client import DEFAULT_DEADLINE_SECONDS, Client
from babelserve.terminal import in_one_line

_MOST_SECONDS = 1e9  # 30 years; gRPC takes an instant after 300 years for one in the past
_MAX_KEY_BYTES = 4096  # half of what gRPC takes of all headers of a call


def add_connection_flags(parser: argparse.ArgumentParser) -> None:
    """Adds all but the address itself, whose flag each command names: `--deadline`, `--api-key-file`, TLS, health."""
    add = parser.add_argument
    add(
        "--deadline",
        type=seconds_of_a_call,
        default=DEFAULT_DEADLINE_SECONDS,
        metavar="SECONDS",
        help="longest wait for one batch of texts (default: %(default)g)",
    )
    add(
        "--no-health",
        action="store_true",
        help="do not ask the server's health first, where a front does not pass it on",
    )
    add("--api-key-file", type=Path, metavar="FILE", help="file that holds the API key, where the server asks for one")
    tls = parser.add_argument_group("TLS")
    tls.add_argument("--tls", action="store_true", help="encrypt; implied by the other flags of this group")
    tls.add_argument("--tls-ca", type=Path, metavar="FILE", help="PEM certificates that may vouch for the server")
    tls.add_argument("--tls-cert", type=Path, metavar="FILE", help="PEM certificate of this client")
    tls.add_argument("--tls-key", type=Path, metavar="FILE", help="PEM private key of this client")
    tls.add_argument("--tls-server-name", metavar="NAME", help="name in the server's certificate, if not the address's")


def add_version_flag(parser: argparse.ArgumentParser) -> None:
    """Adds `--version`, which prints the command's name and this distribution's version."""
    version = importlib.metadata.version("babelserve-client")
    parser.add_argument("--version", action="version", version=f"%(prog)s {version}")


class Parser(argparse.ArgumentParser):
    """A parser whose errors repeat what it was given without what a terminal would obey."""

    def error(self, message: str) -> NoReturn:
        """See `argparse.ArgumentParser.error`."""
        super().error(in_one_line(message))


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses a command line. Of `--flag=--` an older Python makes an empty list (its issue 109475): a fault as well."""
    arguments = parser.parse_args(argv)
    for name, value in vars(arguments).items():
        if value == [] and value is not parser.get_default(name):
            parser.error(f"argument {name.replace('_', '-')}: -- is no value")
    return arguments


def connect(address: str, arguments: argparse.Namespace, *, max_attempts: int) -> Client:
    """Makes a client by the flags.

    Args:
        address: HOST:PORT.
        arguments: with what `add_connection_flags` adds.
        max_attempts: of a call, 1 to 5.

    Raises:
        ValueError: the flags do not fit together, or a file does not hold what it should.
        OSError: a file cannot be read.
    """
    tls = TlsOptions(
        ca_file=arguments.tls_ca,
        certificate_file=arguments.tls_cert,
        key_file=arguments.tls_key,
        server_name=arguments.tls_server_name,
    )
    is_encrypted = arguments.tls or tls != TlsOptions()
    api_key = read_key(arguments.api_key_file) if arguments.api_key_file else None
    return Client(
        address,
        tls=tls if is_encrypted else None,
        api_key=api_key,
        deadline_seconds=arguments.deadline,
        max_attempts=max_attempts,
        watch_health=not arguments.no_health,
    )


def read_key(file: Path) -> str:
    """Returns the key that the file of `--api-key-file` holds, and nothing else. Raises OSError, ValueError."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_KEY_BYTES + 1)
        if len(data) > _MAX_KEY_BYTES:
            raise ValueError(f"it has more than {_MAX_KEY_BYTES} bytes")
        key = data.decode().strip()
        call_metadata(key)
    except OSError as error:
        raise OSError(f"--api-key-file: {file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"--api-key-file: {file} must hold the key alone: {error}") from error
    return key


def seconds_of_a_call(text: str) -> float:
    """Reads how long a call may take, for `argparse`."""
    value = float(text)
    if not 0 < value <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be over 0 and at most {_MOST_SECONDS:g} seconds, not {text}")
    return value


def non_negative_float(text: str) -> float:
    """Reads a number that is 0 or more, for `argparse`."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be at least 0, not {text}")
    return value
