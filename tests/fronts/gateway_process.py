"""A gateway in a process of its own: started on a free port, waited for by its health, stopped by SIGTERM."""

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.acceptance.server_process import REPOSITORY, free_ports


@contextmanager
def running_gateway(server: str) -> Iterator[str]:
    """A gateway that serves, stopped at the end of the block.

    Args:
        server: address of the server that it asks.

    Yields:
        Its address over HTTP.
    """
    port, metrics_port = free_ports(2)
    ports = ["--http-port", str(port), "--metrics-port", str(metrics_port)]
    command = [sys.executable, "-m", "server.gateway", "--server", server, *ports, "--drain-delay", "0"]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_until_serving(process, f"{address}/healthz")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    assert code == 0


def _wait_until_serving(process: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url):  # an address of the loopback
                return
        except urllib.error.URLError:  # it does not listen yet, or its server does not serve
            time.sleep(0.1)
    raise AssertionError(f"the gateway does not serve; exit code {process.poll()}")
