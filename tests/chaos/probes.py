"""What is looked at while a fault lasts, and after it: health, the metrics page, /proc."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from tests.acceptance.server_process import ServerProcess

_PROBE_INTERVAL_SECONDS = 0.25
_PROBE_TIMEOUT_SECONDS = 1.0


@dataclass(slots=True)
class HealthLog:
    """How often health was asked, and how often the answer was another than SERVING, or none within a second."""

    num_asked: int = 0
    num_bad: int = 0


@contextmanager
def health_probe(server: ServerProcess) -> Iterator[HealthLog]:
    """Asks for readiness and liveness, as Kubernetes does, all through the block."""
    log, is_over = HealthLog(), threading.Event()

    def ask() -> None:
        with grpc.insecure_channel(server.health_address) as channel:
            stub = HealthStub(channel)
            while not is_over.wait(_PROBE_INTERVAL_SECONDS):
                for service in ("readiness", "liveness"):
                    log.num_asked += 1
                    log.num_bad += not _is_serving(stub, service)

    thread = threading.Thread(target=ask, name="health-probe")
    thread.start()
    try:
        yield log
    finally:
        is_over.set()
        thread.join()


def _is_serving(stub: HealthStub, service: str) -> bool:
    try:
        answer = stub.Check(HealthCheckRequest(service=service), timeout=_PROBE_TIMEOUT_SECONDS)
    except grpc.RpcError:
        return False
    return bool(answer.status == HealthCheckResponse.SERVING)
