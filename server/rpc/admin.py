"""`babelserve.v1.ModelAdmin`: messages in, a change of the models, messages out. Each call writes a line in the log.

A change that has begun goes on when its caller leaves, because a version that was loaded must be served or unloaded.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from babelserve.v1 import model_admin_pb2 as pb
from server.access.access import Access
from server.access.keys import key_of
from server.api.messages import parse
from server.errors import Code, InvalidRequest, TranslationError
from server.models.administration import Administration, ModelStatus, VersionState
from server.rpc.statuses import STATUS_CODES
from server.telemetry.catalogue_metrics import CatalogueMetrics
from server.telemetry.log import add_facts, begin_request, facts
from server.translation.calls import choose_id
from server.translation.rules import shown

logger = logging.getLogger(__name__)

ADMIN_NAME = "babelserve.v1.ModelAdmin"
_STATES = {
    VersionState.AVAILABLE: pb.VersionStatus.AVAILABLE,
    VersionState.LOADED: pb.VersionStatus.LOADED,
}

_M = TypeVar("_M", bound=Message)


class ModelAdminService:
    """The handlers of the five methods.

    Args:
        administration: changes the models.
        access: knows who may call.
        metrics: are told how each call ended.
    """

    def __init__(self, administration: Administration, access: Access, metrics: CatalogueMetrics) -> None:
        self._administration = administration
        self._access = access
        self._metrics = metrics
        self._running: set[asyncio.Task[Message]] = set()

    def handler(self) -> "grpc.GenericRpcHandler[Any, Any]":
        """Returns the handlers that a gRPC server registers."""
        methods = {
            "ListVersions": self._method(pb.ListVersionsRequest, self.list_versions, "ListVersions"),
            "Load": self._method(pb.LoadRequest, self.load, "Load"),
            "Unload": self._method(pb.UnloadRequest, self.unload, "Unload"),
            "Rollback": self._method(pb.RollbackRequest, self.rollback, "Rollback"),
            "SetTraffic": self._method(pb.SetTrafficRequest, self.set_traffic, "SetTraffic"),
        }
        return grpc.method_handlers_generic_handler(ADMIN_NAME, methods)

    async def list_versions(self, _: pb.ListVersionsRequest) -> pb.ListVersionsResponse:
        """Returns the status of all models."""
        return pb.ListVersionsResponse(models=[_status(each) for each in await self._administration.statuses()])

    async def load(self, message: pb.LoadRequest) -> pb.ModelStatus:
        """Loads a version, or makes the model follow its folder."""
        return _status(await self._administration.load(_model(message), _version(message)))

    async def unload(self, message: pb.UnloadRequest) -> pb.ModelStatus:
        """Unloads a version, or the model."""
        return _status(await self._administration.unload(_model(message), _version(message)))

    async def rollback(self, message: pb.RollbackRequest) -> pb.ModelStatus:
        """Gives all requests to the version before, or to the named one."""
        return _status(await self._administration.rollback(_model(message), _version(message)))

    async def set_traffic(self, message: pb.SetTrafficRequest) -> pb.ModelStatus:
        """Shares out a model's requests among its versions."""
        name = _model(message)
        percents = {each.version: each.percent for each in message.traffic}
        if len(percents) < len(message.traffic):
            raise InvalidRequest("traffic", "must name each version once")
        add_facts(traffic=", ".join(f"{shown(version)}={percent}" for version, percent in percents.items()))
        return _status(await self._administration.set_traffic(name, percents))

    def _method(
        self, kind: type[_M], change: Callable[[_M], Awaitable[Message]], name: str
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        async def handle(data: bytes, context: Any) -> bytes:
            begin_request(choose_id(dict(context.invocation_metadata() or ()).get("x-request-id")))
            task = asyncio.create_task(self._run(name, partial(self._answer, kind, change, data, context)))
            self._running.add(task)
            task.add_done_callback(self._end)
            try:
                return (await asyncio.shield(task)).SerializeToString()
            except TranslationError as error:
                aborted: bytes = await context.abort(STATUS_CODES[error.code], str(error))  # it always raises
                return aborted

        return grpc.unary_unary_rpc_method_handler(handle)

    async def _answer(
        self, kind: type[_M], change: Callable[[_M], Awaitable[Message]], data: bytes, context: Any
    ) -> Message:
        add_facts(operator=self._access.identify_admin(key_of(dict(context.invocation_metadata() or ()))))
        return await change(parse(kind, data))

    async def _run(self, method: str, answer: Callable[[], Awaitable[Message]]) -> Message:
        """Counts a call and writes its line."""
        started, code, fault = time.monotonic(), Code.INTERNAL, {}
        try:
            answered = await answer()
            code = Code.OK
            return answered
        except TranslationError as error:
            code, fault = error.code, {"error": str(error)}
            raise
        except Exception as error:
            logger.exception("a change of the models failed by an error of the server's own")
            raise TranslationError("internal error; the server's log says more") from error
        finally:
            self._metrics.count_admin_request(method, code)
            seconds = round(time.monotonic() - started, 6)
            fields = {"method": method, "code": code.name, "seconds": seconds, **facts(), **fault}
            level = logging.ERROR if code.is_ours else logging.INFO
            logger.log(level, "model admin", extra={"facts": fields})

    def _end(self, task: "asyncio.Task[Message]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # the caller may have left, and nobody else would look at the error


def _model(message: pb.LoadRequest | pb.UnloadRequest | pb.RollbackRequest | pb.SetTrafficRequest) -> str:
    if not message.model:
        raise InvalidRequest("model", "is required")
    add_facts(model=shown(message.model))
    return message.model


def _version(message: pb.LoadRequest | pb.UnloadRequest | pb.RollbackRequest) -> str:
    if message.version:
        add_facts(model_version=shown(message.version))
    return message.version


def _status(status: ModelStatus) -> pb.ModelStatus:
    return pb.ModelStatus(
        model=status.name,
        follows_folder=status.follows_folder,
        versions=[
            pb.VersionStatus(
                version=each.version, state=_STATES[each.state], traffic_percent=each.percent, fault=each.fault
            )
            for each in status.versions
        ],
    )
