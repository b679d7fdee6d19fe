"""Servers to be broken: with a keyed network in the real one's place, with faults, and replicas that come back."""

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tests.acceptance.server_process import ServerProcess, free_ports, launch_server, running_server
from tests.chaos.failpoints import Action, Point

FLAGS = ("--variant", "cpu-fp32", "--lanes", "1")
_PORTS = ("--port", "--health-port", "--admin-port", "--metrics-port", "--http-port")
_STOP_SECONDS = 10.0
_SIGNAL_SECONDS = 0.1  # until the process has taken a signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What `tests.chaos.launch` makes of a server.

    Attributes:
        step_seconds: that a step of the keyed network takes; None for the real network.
        row_seconds: that each row of it takes besides.
        habit: of the keyed network, one of `tests.chaos.keyed_network.HABITS`; "" for none.
        sees_hangs: whether the supervisor sees that a step hangs.
    """

    step_seconds: float | None = 0.002
    row_seconds: float = 0.0
    habit: str = ""
    sees_hangs: bool = True

    def module(self, faults: Path) -> tuple[str, ...]:
        """Returns what is run instead of `server`."""
        return ("tests.chaos.launch", json.dumps({**asdict(self), "faults": str(faults)}), "--")


@dataclass(frozen=True, slots=True)
class BrokenServer:
    """A server whose faults are armed from here."""

    process: ServerProcess
    faults: Path

    @property
    def address(self) -> str:
        """Where the translation service is."""
        return self.process.address

    @property
    def pid(self) -> int:
        """Of the server."""
        return self.process.process.pid

    def arm(self, point: Point, action: Action, times: int = 1, *, every: int = 1) -> None:
        """Makes a fault strike so many times, negative for without end, and one pass of `every` passes of its point."""
        self.faults.write_text(f"{point.value} {action.value} {times} {every}", encoding="utf-8")
        os.kill(self.pid, signal.SIGUSR1)
        time.sleep(_SIGNAL_SECONDS)

    def disarm(self) -> None:
        """Ends the fault."""
        os.kill(self.pid, signal.SIGUSR2)
        time.sleep(_SIGNAL_SECONDS)


@contextmanager
def broken_server(
    spec: Spec | None = None, flags: Sequence[str] = (), prefix: Sequence[str] = ()
) -> Iterator[BrokenServer]:
    """A server by `spec` that serves; stopped at the end of the block, killed if it does not listen to SIGTERM."""
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        faults = Path(directory) / "fault"
        module = (spec or Spec()).module(faults)
        with running_server([*FLAGS, *flags], module=module, prefix=prefix) as process:
            try:
                yield BrokenServer(process, faults)
            finally:
                process.stop(_STOP_SECONDS)


@dataclass(slots=True)
class Replicas:
    """Servers that keep their ports however often they are started anew.

    Attributes:
        servers: the running process of each.
    """

    spec: Spec
    flags: Sequence[str]
    directory: Path
    ports: list[list[int]]
    servers: list[ServerProcess] = field(default_factory=list)

    @property
    def addresses(self) -> list[str]:
        """Where each serves."""
        return [server.address for server in self.servers]

    def start(self, index: int) -> ServerProcess:
        """Starts a replica, and returns at once."""
        ports = dict(zip(_PORTS, self.ports[index], strict=False))
        flags = [*FLAGS, *self.flags, *(str(word) for pair in ports.items() for word in pair)]
        module = self.spec.module(self.directory / f"fault-{index}")
        server = launch_server(self.directory / f"stderr-{index}.log", flags, module=module)
        port, health_port, admin_port, metrics_port, *_ = self.ports[index]
        server = replace(server, port=port, health_port=health_port, admin_port=admin_port, metrics_port=metrics_port)
        self.servers[index : index + 1] = [server]
        return server


@contextmanager
def replicas(
    count: int, spec: Spec | None = None, flags: Sequence[str] = (), *, has_http: bool = False
) -> Iterator[Replicas]:
    """So many servers that serve, over HTTP too if `has_http`; killed at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        num_ports = len(_PORTS) if has_http else len(_PORTS) - 1
        ports = free_ports(num_ports * count)
        ports_of = [ports[num_ports * index : num_ports * (index + 1)] for index in range(count)]
        group = Replicas(spec or Spec(), flags, Path(directory), ports_of)
        try:
            for index in range(count):
                group.start(index)
            for server in group.servers:
                server.wait_until_serving()
            yield group
        finally:
            for server in group.servers:
                server.process.kill()
                server.process.wait()
