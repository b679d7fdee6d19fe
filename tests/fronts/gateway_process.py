"""A gateway in a process of its own: started on a free port, waited for by its health, stopped by SIGTERM."""

import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.acceptance.server_process import REPOSITORY, free_ports


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway.

    Attributes:
        process: of it.
        port: of HTTP.
        metrics_url: its metrics page.
        context: of TLS, to call it with; None for none.
    """

    process: "subprocess.Popen[bytes]"
    port: int
    metrics_url: str
    context: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        """Its address over HTTP."""
        return f"http://127.0.0.1:{self.port}" if self.context is None else f"https://localhost:{self.port}"

    def health(self) -> int:
        """Returns the status of its health; 0 where nobody listens."""
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", context=self.context) as answer:  # of the loopback
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def metrics(self) -> str:
        """Returns its metrics page."""
        with urllib.request.urlopen(self.metrics_url) as page:
            return str(page.read().decode())

    def wait_for_health(self, status: int, seconds: float = 40.0) -> None:
        """Waits until its health has a status. Raises AssertionError if that does not come in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            if self.health() == status:
                return
            time.sleep(0.1)
        raise AssertionError(f"the gateway's health is not {status}; exit code {self.process.poll()}")


@contextmanager
def started_gateway(server: str, *flags: str, context: ssl.SSLContext | None = None) -> Iterator[Gateway]:
    """A gateway, stopped at the end of the block. Its exit code must be 0.

    Args:
        server: address of the server that it asks.
        flags: more of its flags; one given twice takes its last value.
        context: of TLS, to call it with; None for none.
    """
    port, metrics_port = free_ports(2)
    ports = ["--http-port", str(port), "--metrics-port", str(metrics_port)]
    command = [sys.executable, "-m", "server.gateway", "--server", server, *ports, "--drain-delay", "0", *flags]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    try:
        yield Gateway(process, port, f"http://127.0.0.1:{metrics_port}/metrics", context)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    assert code == 0


@contextmanager
def running_gateway(server: str) -> Iterator[str]:
    """A gateway that serves, stopped at the end of the block; gives its address over HTTP."""
    with started_gateway(server) as gateway:
        gateway.wait_for_health(200)
        yield gateway.url
