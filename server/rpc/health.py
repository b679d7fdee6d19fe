"""`grpc.health.v1`: what balancers, probes and clients ask.

Names: "" and the service say whether to send requests here, `readiness` the same for probes. `liveness` says whether
the process is worth keeping, independent of load: an event loop that answers, and an engine that makes progress. One
servicer answers on the public port and on the health port, which stays plain where the public one wants TLS.
"""

import asyncio
import logging
import time
from collections.abc import Callable

import grpc
from grpc_health.v1.health import aio  # type: ignore[attr-defined]
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from server.rpc.service import SERVICE_NAME
from server.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

HEALTH_NAME = "grpc.health.v1.Health"
LIVENESS = "liveness"
_SERVING_NAMES = ("", SERVICE_NAME, "readiness")
_TICK_SECONDS = 0.5


class Health:
    """The state that is told; NOT_SERVING but alive at first.

    Args:
        metrics: told how late the event loop is.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._servicer = aio.HealthServicer()

    def add_to(self, server: grpc.aio.Server) -> None:
        """Makes a server answer health checks."""
        add_HealthServicer_to_server(self._servicer, server)

    async def set_serving(self, is_serving: bool) -> None:
        """Tells whether requests are welcome."""
        for name in _SERVING_NAMES:
            await self._set(name, is_serving)

    async def set_alive(self, is_alive: bool) -> None:
        """Tells whether the process is worth keeping."""
        await self._set(LIVENESS, is_alive)

    async def watch(self, is_alive: Callable[[], bool], tick_seconds: float = _TICK_SECONDS) -> None:
        """Tells liveness and measures the event loop's lag, tick by tick, until cancelled."""
        was_alive = True
        while True:
            due = time.monotonic() + tick_seconds
            await asyncio.sleep(tick_seconds)
            self._metrics.event_loop_lag_seconds.observe(max(0.0, time.monotonic() - due))
            alive = is_alive()
            if was_alive and not alive:
                logger.error("the engine makes no progress: liveness is NOT_SERVING")
            was_alive = alive
            await self.set_alive(alive)

    async def _set(self, name: str, is_serving: bool) -> None:
        status = HealthCheckResponse.SERVING if is_serving else HealthCheckResponse.NOT_SERVING
        await self._servicer.set(name, status)
