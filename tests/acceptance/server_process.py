"""A babelserve server in a process of its own: started on free ports, waited for by its health, stopped by SIGTERM."""

import fcntl
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

REPOSITORY = Path(__file__).resolve().parents[2]
BUILTIN_BUNDLE = REPOSITORY / "server" / "builtin" / "en-de"

# How long one connection attempt to a port that nobody listens on yet is followed by waiting for the process to end.
_CONNECT_INTERVAL_SECONDS = 0.005
_PORTS = range(10_000, 32_768)  # Linux gives clients the ports from 32768 on
# Holds the port that is tried next. All processes of a user share it, so two of them never find the same port.
_NEXT_PORT_PATH = Path(tempfile.gettempdir()) / f"babelserve-next-test-port-{os.getuid()}"


class ServerNotServing(Exception):
    """The server ended, or was not SERVING in time; the text holds what it wrote to stderr."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProcess:
    """A running server.

    Attributes:
        process: The process; its stderr goes to `stderr_path`, and its stdout too.
        host: The address that it listens on.
        port: Port of the translation service.
        health_port: Port of the health service.
        admin_port: Port of the admin service.
        metrics_port: Port of the metrics page.
        stderr_path: What it wrote.
        started: `time.monotonic()` at the start of the process.
        seconds_to_serving: From there to health SERVING; NaN while nobody has waited for it.
    """

    process: "subprocess.Popen[bytes]"
    host: str
    port: int
    health_port: int
    admin_port: int
    metrics_port: int
    stderr_path: Path
    started: float
    seconds_to_serving: float = math.nan

    @property
    def address(self) -> str:
        """Where the translation service is, as gRPC takes it."""
        return f"{self.host}:{self.port}"

    @property
    def health_address(self) -> str:
        """Where the health service is, as gRPC takes it."""
        return f"{self.host}:{self.health_port}"

    @property
    def metrics_url(self) -> str:
        """The metrics page."""
        return f"http://{self.host}:{self.metrics_port}/metrics"

    def stderr(self) -> str:
        """Returns what the server has written so far."""
        return self.stderr_path.read_text(encoding="utf-8", errors="replace")

    def wait_until_serving(self, timeout_seconds: float = 60.0, service: str = "readiness") -> float:
        """Waits for the health service to say SERVING.

        Args:
            timeout_seconds: How long to wait, from now.
            service: Name that is asked of the health service.

        Returns:
            Seconds from the start of the process to the answer.

        Raises:
            ServerNotServing: It ended before, or the time was up.
        """
        deadline = time.monotonic() + timeout_seconds
        self._wait_until_listening(self.health_port, deadline)
        with grpc.insecure_channel(self.health_address) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(
                health_pb2.HealthCheckRequest(service=service),
                timeout=max(deadline - time.monotonic(), 0.001),
                wait_for_ready=True,
            )
            threading.Thread(target=self._cancel_at_exit, args=(watch.cancel,), daemon=True).start()
            try:
                for answer in watch:
                    if answer.status == health_pb2.HealthCheckResponse.SERVING:
                        return time.monotonic() - self.started
            except grpc.RpcError as error:
                raise self._not_serving(f"health watch ended with {error}") from error
            finally:
                watch.cancel()
        raise self._not_serving("the health watch ended")

    def stop(self, timeout_seconds: float = 60.0) -> int:
        """Sends SIGTERM and waits for the end; a second call only returns the exit code.

        Args:
            timeout_seconds: How long to wait before it is killed.

        Returns:
            The exit code; negative the signal that ended it.
        """
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def _wait_until_listening(self, port: int, deadline: float) -> None:
        """Returns once something accepts connections at `port`."""
        while True:
            try:
                socket.create_connection((self.host, port), timeout=1.0).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise self._not_serving(f"nothing listens on port {port}") from None
            try:
                self.process.wait(_CONNECT_INTERVAL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            raise self._not_serving(f"the server ended with exit code {self.process.returncode}")

    def _cancel_at_exit(self, cancel: Callable[[], object]) -> None:
        """Ends the watch when the server is gone, so that nobody waits for it."""
        self.process.wait()
        cancel()

    def _not_serving(self, reason: str) -> ServerNotServing:
        return ServerNotServing(f"{reason}; it wrote:\n{self.stderr()}")


def free_ports(count: int) -> list[int]:
    """Finds ports of the loopback that nobody listens on at this moment.

    The next call finds other ports, in this process and in every other one of the same user, so the caller may listen
    later. The system gives none of these ports to a client, whose connection could take a port before the server does.

    Args:
        count: How many.

    Returns:
        Different port numbers.
    """
    ports: list[int] = []
    with _NEXT_PORT_PATH.open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        port = int(file.read() or _PORTS.start)
        while len(ports) < count:
            with suppress(OSError), socket.socket() as tried:
                tried.bind(("127.0.0.1", port))
                ports.append(port)
            port = port + 1 if port + 1 in _PORTS else _PORTS.start
        file.truncate(0)
        file.write(str(port))
    return ports


def launch_server(
    stderr_path: Path,
    flags: Sequence[str] = (),
    *,
    python: str = sys.executable,
    cwd: Path = REPOSITORY,
    module: Sequence[str] = ("server",),
    prefix: Sequence[str] = (),
) -> ServerProcess:
    """Starts `python -m server` on free ports of the loopback and returns at once.

    Args:
        stderr_path: File that takes what it writes.
        flags: More flags; one given twice takes its last value.
        python: The interpreter that runs it.
        cwd: Working directory; the repository, so that its own code runs.
        module: Another one to run instead, and arguments of its own; it takes the server's flags after them.
        prefix: A command that runs the command, such as `faketime`.

    Returns:
        The server, which may not serve yet. The caller stops it.
    """
    port, health_port, admin_port, metrics_port = free_ports(4)
    ports = ["--port", port, "--health-port", health_port, "--admin-port", admin_port, "--metrics-port", metrics_port]
    command = [*prefix, python, "-m", *module, "--host", "127.0.0.1", *map(str, ports), "--drain-delay", "0", *flags]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BABELSERVE_")}
    started = time.monotonic()
    with stderr_path.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=cwd, env=environment)
    return ServerProcess(
        process=process,
        host="127.0.0.1",
        port=port,
        health_port=health_port,
        admin_port=admin_port,
        metrics_port=metrics_port,
        stderr_path=stderr_path,
        started=started,
    )


@contextmanager
def running_server(
    flags: Sequence[str] = (),
    *,
    python: str = sys.executable,
    cwd: Path = REPOSITORY,
    timeout_seconds: float = 60.0,
    module: Sequence[str] = ("server",),
    prefix: Sequence[str] = (),
) -> Iterator[ServerProcess]:
    """A server that serves, stopped at the end of the block.

    Args:
        flags: More flags of the server.
        python: The interpreter that runs it.
        cwd: Working directory, whose code runs.
        timeout_seconds: How long it may take to serve.
        module: As for `launch_server`.
        prefix: Likewise.

    Yields:
        The server.

    Raises:
        ServerNotServing: It did not serve in time.
    """
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        log = Path(directory) / "stderr.log"
        server = launch_server(log, flags, python=python, cwd=cwd, module=module, prefix=prefix)
        try:
            seconds = server.wait_until_serving(timeout_seconds)
            yield replace(server, seconds_to_serving=seconds)
        finally:
            server.stop()
