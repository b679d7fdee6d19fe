"""`grpc.health.v1`: what balancers, Kubernetes and clients ask.

Names: "" and the service say whether to send requests here. `readiness` says the same to Kubernetes. `liveness` says
whether the process is worth keeping, independent of load: an event loop that answers, and an engine that is not lost. A
model's name says whether requests for that model are welcome; all the others want one model at least, and each to be
ready. One servicer answers on the public port and on the health port, which stays plain where the public one wants TLS.

Anybody may call, so the messages of these calls are bounded like all others, by an `Intake` of their own: other calls
do not keep them waiting. A watch keeps neither its message nor the end of a name that is longer than any name can be.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse

from server.api.messages import parse
from server.errors import TranslationError
from server.rpc.intake import HEALTH_MESSAGES, Intake
from server.rpc.service import SERVICE_NAME
from server.rpc.statuses import STATUS_CODES
from server.telemetry.metrics import Metrics
from server.translation.memory import MemoryBudget

HEALTH_NAME = "grpc.health.v1.Health"
LIVENESS = "liveness"
_SERVING_NAMES = ("", SERVICE_NAME, "readiness")
_TICK_SECONDS = 0.5
_MOST_CHARACTERS = 256  # of a name that is kept; no model has more than 128
_SLOW_SECONDS = 3.0  # for the message of a connection that has been slow

_M = TypeVar("_M", bound=Message)


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
        self._told = dict.fromkeys(_SERVING_NAMES, False) | {LIVENESS: True}
        self._intake = Intake(MemoryBudget(0), HEALTH_MESSAGES, slow_seconds=_SLOW_SECONDS)  # no message is held
        self._changed = asyncio.Event()  # is set, and another takes its place, when anything else is told

    def add_to(self, server: grpc.aio.Server) -> None:
        """Makes a server answer health checks."""
        unary, stream = grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        told = HealthCheckResponse.SerializeToString
        methods = {
            "Check": unary(self._check, None, told),
            "Watch": stream(self._watch, None, told),
            "List": unary(self._list, None, HealthListResponse.SerializeToString),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(HEALTH_NAME, methods),))

    def set_serving(self, is_serving: bool) -> None:
        """Tells whether requests are welcome. They are not while the watched models are not ready, either."""
        self._is_welcome = is_serving
        self._tell_serving()

    @property
    def is_serving(self) -> bool:
        """Whether requests are welcome, and all watched models are ready."""
        models = self._is_ready or {}
        return self._is_welcome and self._is_ready != {} and all(models.values())

    def is_ready(self, name: str = "") -> bool:
        """Returns whether requests for a model are welcome; without a name, whether any are."""
        return (self._is_welcome and (self._is_ready or {}).get(name, False)) if name else self.is_serving

    def begin_draining(self) -> None:
        """Tells that requests are not welcome any more, because the server is about to end."""
        self._metrics.draining.set(1)
        self.set_serving(False)

    def set_alive(self, is_alive: bool) -> None:
        """Tells whether the process is worth keeping."""
        self._set(LIVENESS, is_alive)

    async def watch(
        self,
        are_ready: Callable[[], Mapping[str, bool]],
        is_alive: Callable[[], bool],
        tick_seconds: float = _TICK_SECONDS,
    ) -> None:
        """Tells readiness by model, and liveness, at every tick until not alive. Measures the lag of the event loop."""
        alive = True
        self._is_ready = are_ready()
        self._tell_serving()
        while alive:
            due = time.monotonic() + tick_seconds
            await asyncio.sleep(tick_seconds)
            self._metrics.event_loop_lag_seconds.observe(max(0.0, time.monotonic() - due))
            self._is_ready, alive = are_ready(), is_alive()
            self._tell_serving()
            self.set_alive(alive)

    def _tell_serving(self) -> None:
        is_serving = self.is_serving
        self._metrics.ready.set(is_serving)
        for name in _SERVING_NAMES:
            self._set(name, is_serving)
        models = self._is_ready or {}
        self._names |= dict.fromkeys(models)
        for name in self._names:
            self._set(name, self._is_welcome and models.get(name, False))

    def _set(self, name: str, is_serving: bool) -> None:
        """Tells watchers, but waits for none of them: a watcher may never read."""
        if self._told.get(name) is is_serving:
            return
        self._told[name] = is_serving
        self._changed.set()
        self._changed = asyncio.Event()

    async def _check(self, _: Any, context: Any) -> HealthCheckResponse:
        name = (await self._read(HealthCheckRequest, context)).service[: _MOST_CHARACTERS + 1]
        if name not in self._told:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return self._response(name)

    async def _watch(self, _: Any, context: Any) -> None:
        name = (await self._read(HealthCheckRequest, context)).service[: _MOST_CHARACTERS + 1]
        last = None
        while True:
            changed = self._changed  # before the status is read, so that no later change is missed
            response = self._response(name)
            if response != last:
                await context.write(response)
                last = response
            await changed.wait()

    async def _list(self, _: Any, context: Any) -> HealthListResponse:
        await self._read(HealthListRequest, context)
        return HealthListResponse(statuses={name: self._response(name) for name in self._told})

    async def _read(self, kind: type[_M], context: Any) -> _M:
        """Returns the message of a call. Ends the call if there is none, or if it is not whole in time."""
        try:
            return parse(kind, await self._intake.read(context))
        except TranslationError as error:
            await context.abort(STATUS_CODES[error.code], str(error))
            raise

    def _response(self, name: str) -> HealthCheckResponse:
        if name not in self._told:
            return HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN)
        is_serving = self._told[name]
        return HealthCheckResponse(
            status=HealthCheckResponse.SERVING if is_serving else HealthCheckResponse.NOT_SERVING
        )
