"""What the gateway shows and trusts towards its server, read again when the files change."""

import argparse
from collections.abc import Mapping

import grpc

from server.access.certificates import prove_client
from server.access.watched_files import WatchedFiles
from server.telemetry.access_metrics import AccessMetrics

_FLAGS = ("--server-ca", "--server-cert", "--server-key")

Credentials = WatchedFiles[grpc.ChannelCredentials]


def watched_credentials(options: argparse.Namespace, metrics: AccessMetrics) -> Credentials | None:
    """Returns the credentials for the server; None for no TLS.

    Args:
        options: of the command line, checked.
        metrics: told of reloads.

    Raises:
        SettingsError: everything that is wrong with the files.
    """
    if options.server_ca is None:
        return None
    paths = {flag: getattr(options, flag[2:].replace("-", "_")) for flag in _FLAGS}
    given = {flag: path for flag, path in paths.items() if path is not None}
    return WatchedFiles("server-certificates", given, _load, metrics)


def _load(contents: Mapping[str, bytes]) -> grpc.ChannelCredentials:
    authorities, chain, key = contents["--server-ca"], contents.get("--server-cert"), contents.get("--server-key")
    prove_client(authorities, chain, key)
    return grpc.ssl_channel_credentials(authorities, key, chain)
