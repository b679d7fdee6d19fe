"""`grpc.health.v1`: what balancers, Kubernetes and clients ask.

Names: "" and the service say whether to send requests here. `readiness` says the same to Kubernetes. `liveness` says
whether the process is worth keeping, independent of load: an event loop that answers, and an engine that is not lost. A
model's name says whether requests for that model are welcome; all the others want one model at least, and each to be
ready. One servicer answers on the public port and on the health port, which stays plain where the public one wants TLS.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from grpc_health.v1.health import aio  # type: ignore[attr-defined]
from grpc_health.v1.health_pb2 import HealthCheckResponse, HealthListRequest, HealthListResponse
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from server.rpc.service import SERVICE_NAME
from server.telemetry.metrics import Metrics

HEALTH_NAME = "grpc.health.v1.Health"
LIVENESS = "liveness"
_SERVING_NAMES = ("", SERVICE_NAME, "readiness")
_TICK_SECONDS = 0.5


class _Servicer(aio.HealthServicer):  # type: ignore[misc] # untyped
    """The library's servicer, with the method that it lacks: a call of that method would log a traceback."""

    async def List(self, request: HealthListRequest, context: Any) -> HealthListResponse:  # noqa: ARG002, N802
        statuses = {name: HealthCheckResponse(status=status) for name, status in self._server_status.items()}
        return HealthListResponse(statuses=statuses)


class Health:
    """The health that is told. At first it is NOT_SERVING but alive.

    Args:
        metrics: are told how late the event loop is, and what is told here.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._is_welcome = False
        self._is_ready: Mapping[str, bool] | None = None  # by model; None until `watch` runs
        self._names: dict[str, None] = {}  # of models, also of models that are not served any more
        self._told: dict[str, bool] = {}
        self._servicer = _Servicer()

    def add_to(self, server: grpc.aio.Server) -> None:
        """Makes a server answer health checks."""
        add_HealthServicer_to_server(self._servicer, server)

    async def set_serving(self, is_serving: bool) -> None:
        """Tells whether requests are welcome. They are not while the watched models are not ready, either."""
        self._is_welcome = is_serving
        await self._tell_serving()

    @property
    def is_serving(self) -> bool:
        """Whether requests are welcome, and all watched models are ready."""
        models = self._is_ready or {}
        return self._is_welcome and self._is_ready != {} and all(models.values())

    def is_ready(self, name: str = "") -> bool:
        """Returns whether requests for a model are welcome; without a name, whether any are."""
        return (self._is_welcome and (self._is_ready or {}).get(name, False)) if name else self.is_serving

    async def begin_draining(self) -> None:
        """Tells that requests are not welcome any more, because the server is about to end."""
        self._metrics.draining.set(1)
        await self.set_serving(False)

    async def set_alive(self, is_alive: bool) -> None:
        """Tells whether the process is worth keeping."""
        await self._set(LIVENESS, is_alive)

    async def watch(
        self,
        are_ready: Callable[[], Mapping[str, bool]],
        is_alive: Callable[[], bool],
        tick_seconds: float = _TICK_SECONDS,
    ) -> None:
        """Tells readiness by model, and liveness, at every tick until not alive. Measures the lag of the event loop."""
        alive = True
        self._is_ready = are_ready()
        await self._tell_serving()
        while alive:
            due = time.monotonic() + tick_seconds
            await asyncio.sleep(tick_seconds)
            self._metrics.event_loop_lag_seconds.observe(max(0.0, time.monotonic() - due))
            self._is_ready, alive = are_ready(), is_alive()
            await self._tell_serving()
            await self.set_alive(alive)

    async def _tell_serving(self) -> None:
        is_serving = self.is_serving
        self._metrics.ready.set(is_serving)
        for name in _SERVING_NAMES:
            await self._set(name, is_serving)
        models = self._is_ready or {}
        self._names |= dict.fromkeys(models)
        for name in self._names:
            await self._set(name, self._is_welcome and models.get(name, False))

    async def _set(self, name: str, is_serving: bool) -> None:
        if self._told.get(name) is is_serving:
            return
        self._told[name] = is_serving
        status = HealthCheckResponse.SERVING if is_serving else HealthCheckResponse.NOT_SERVING
        await self._servicer.set(name, status)
