"""What somebody who has started a server at a terminal may do next."""

import shlex

from server.bundle.manifest import Manifest
from server.settings.settings import Settings

_ALL_ADDRESSES = ("0.0.0.0", "::", "")  # to listen on, not to call


def next_steps(settings: Settings, manifest: Manifest, port: int, metrics_port: int) -> str:
    """Returns a few lines: a command to try, where the metrics are, how to stop.

    Args:
        settings: of the server: what its callers must bring.
        manifest: of the model, whose golden sentence is the one to try.
        port: of the API.
        metrics_port: of the metrics page.
    """
    host = "localhost" if settings.host in _ALL_ADDRESSES else settings.host
    host = f"[{host}]" if ":" in host else host
    command = ["babelserve-translate", "--address", f"{host}:{port}"]
    if settings.tls_cert is not None:
        command += ["--tls", "--tls-ca", "CA.pem"]
    if settings.tls_client_ca is not None:
        command += ["--tls-cert", "CLIENT.pem", "--tls-key", "CLIENT-KEY.pem"]
    if settings.keys is not None:
        command += ["--api-key-file", "KEY.txt"]
    pair, text = manifest.golden_pair, manifest.golden.source_text
    command += ["--source", pair.source, "--target", pair.target, text if text.isprintable() else "..."]
    lines = f"try:      {shlex.join(command)}", f"metrics:  http://{host}:{metrics_port}/metrics", "stop:     Ctrl-C"
    return "".join(f"\n  {line}" for line in lines)
