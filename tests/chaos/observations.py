"""What is looked at while a fault lasts, and after it: health, the metrics page, /proc."""

import os
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.server_process import ServerProcess
from tests.children import children
from tests.samples import total

_ASK_INTERVAL_SECONDS = 0.25
_ASK_TIMEOUT_SECONDS = 1.0
_QUIET_SECONDS = 2.0
_SPARE_FILES = 2
_SPARE_THREADS = (
    (os.cpu_count() or 1) + 4 + 5
)  # the pools of asyncio and of the splitter, which grow as they are needed
_EMPTY = ("requests_in_flight", "queue_depth", "queue_tokens", "lane_rows_used")


@dataclass(slots=True)
class HealthLog:
    """How often health was asked, and how often the answer was another than SERVING, or none within a second."""

    num_asked: int = 0
    num_bad: int = 0


@contextmanager
def watched_health(server: ServerProcess, http_port: int | None = None) -> Iterator[HealthLog]:
    """Asks for readiness and liveness, as Kubernetes does, and on the public ports, as balancers do, all the time."""
    log, is_over = HealthLog(), threading.Event()

    def ask() -> None:
        with grpc.insecure_channel(server.health_address) as own, grpc.insecure_channel(server.address) as public:
            asked = ((own, "readiness"), (own, "liveness"), (public, ""))
            while not is_over.wait(_ASK_INTERVAL_SECONDS):
                for channel, service in asked:
                    log.num_asked += 1
                    log.num_bad += not _is_serving(HealthStub(channel), service)
                if http_port is not None:
                    log.num_asked += 1
                    log.num_bad += not is_healthy(server.host, http_port)

    thread = threading.Thread(target=ask, name="health-watch")
    thread.start()
    try:
        yield log
    finally:
        is_over.set()
        thread.join()


def _is_serving(stub: HealthStub, service: str) -> bool:
    try:
        answer = stub.Check(HealthCheckRequest(service=service), timeout=_ASK_TIMEOUT_SECONDS)
    except grpc.RpcError:
        return False
    return bool(answer.status == HealthCheckResponse.SERVING)


def is_healthy(host: str, http_port: int) -> bool:
    """Asks for health over HTTP once."""
    try:
        with urllib.request.urlopen(f"http://{host}:{http_port}/healthz", timeout=_ASK_TIMEOUT_SECONDS) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def is_serving(address: str, service: str = "readiness") -> bool:
    """Asks a health service once."""
    with grpc.insecure_channel(address) as channel:
        return _is_serving(HealthStub(channel), service)


def read_page(server: ServerProcess) -> list[Metric]:
    """Returns the metrics page."""
    with urllib.request.urlopen(server.metrics_url, timeout=5.0) as page:
        return list(text_string_to_metric_families(page.read().decode()))


def metric(server: ServerProcess, name: str, **labels: str) -> float:
    """Returns a sample of the page, summed up over its other labels."""
    return total(read_page(server), f"babelserve_{name}", **labels)


@dataclass(frozen=True, slots=True)
class Resources:
    """What a process holds; resident memory in bytes."""

    num_threads: int
    num_files: int
    num_children: int
    resident_bytes: int
    cpu_seconds: float


def resources(pid: int) -> Resources:
    """Reads /proc, and the clock of the processors that the process has used."""
    process = Path(f"/proc/{pid}")
    fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return Resources(
        num_threads=int(fields["Threads"]),
        num_files=len(list((process / "fd").iterdir())),
        num_children=len(children(pid)),
        resident_bytes=int(fields["VmRSS"].split()[0]) << 10,
        cpu_seconds=time.clock_gettime(~pid << 3 | 2),  # what glibc's clock_getcpuclockid(pid) returns
    )


def left_behind(server: ServerProcess, before: Resources, seconds: float = _QUIET_SECONDS) -> list[str]:
    """Returns what is not as it was (P4), once it has had so long to become so.

    Args:
        server: quiet by now.
        before: what it held when it had served its first calls.
        seconds: to wait at most.
    """
    deadline = time.monotonic() + seconds
    while (faults := _left_behind(server, before)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return faults


def _left_behind(server: ServerProcess, before: Resources) -> list[str]:
    page = read_page(server)
    now = resources(server.process.pid)
    held = {name: total(page, f"babelserve_{name}") for name in _EMPTY}
    faults = [f"{name} is {value:g}" for name, value in held.items() if value]
    started, ended = (total(page, f"babelserve_{name}") for name in ("requests_started_total", "requests_total"))
    faults += [f"{started:g} calls started, {ended:g} ended"] if started != ended else []
    counts = (
        ("file descriptors", now.num_files, before.num_files, _SPARE_FILES),
        ("threads", now.num_threads, before.num_threads, _SPARE_THREADS),
        ("children", now.num_children, before.num_children, 0),
    )
    return faults + [f"{is_} {what}, {was} before" for what, is_, was, spare in counts if is_ > was + spare]


def resident_mib(pid: int) -> float:
    """Returns a process's resident memory, 0 if it has ended."""
    try:
        return resources(pid).resident_bytes / 2**20
    except (OSError, KeyError):  # a process that nobody has waited for yet has no memory
        return 0.0
