"""The server behind the gateway: the channel to it, and what its health says."""

import asyncio
import json
import logging
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub

logger = logging.getLogger(__name__)

SERVICE = "babelserve.v1.TranslationService"
_AGAIN_SECONDS = 1.0  # from a lost watch to the next. Half, and many gateways call a server that starts twice as often.
# Twice, and the gateway is out of service for longer than its server.
_OPTIONS = {
    "grpc.max_receive_message_length": 64 << 20,  # answers are longer than requests
    "grpc.enable_retries": 0,  # the gateway's callers retry, as the server tells them
    "grpc.service_config": json.dumps(
        {"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": SERVICE}}
    ),
}


class Upstream:
    """A server, or all replicas behind a name.

    Args:
        target: as gRPC takes it, such as "localhost:50051" or "dns:///name:50051".
        credentials: of TLS; None for none.
        server_name: that the server's certificate has, where it is not the target's.

    Attributes:
        channel: to it.
        is_serving: whether it takes requests, by its own word.
        asks_for_key: whether it refuses callers without a key.
    """

    def __init__(
        self, target: str, credentials: grpc.ChannelCredentials | None = None, server_name: str | None = None
    ) -> None:
        options: Any = [*_OPTIONS.items()]
        if server_name is not None:
            options.append(("grpc.ssl_target_name_override", server_name))
        if credentials is None:
            self.channel = grpc.aio.insecure_channel(target, options)
        else:
            self.channel = grpc.aio.secure_channel(target, credentials, options)
        self.is_serving = False
        self.asks_for_key = False

    async def watch(self) -> None:
        """Follows the server's health, for ever. Where it cannot, it says why once, and tries again."""
        stub: Any = HealthStub(self.channel)
        told = ""
        while True:
            reason = "the server ended its answer"
            try:
                async for answer in stub.Watch(HealthCheckRequest(service=SERVICE), wait_for_ready=True):
                    is_serving = answer.status == HealthCheckResponse.SERVING
                    if is_serving and not self.is_serving:
                        self.asks_for_key = await self._asks_for_key()
                    self.is_serving = is_serving
                    told = ""
            except grpc.aio.AioRpcError as error:
                reason = f"{error.code().name}: {error.details()}"
            self.is_serving = False
            if reason != told:
                logger.warning("the server's health cannot be followed: %s", reason)
                told = reason
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _asks_for_key(self) -> bool:
        stub: Any = TranslationServiceStub(self.channel)
        try:
            await stub.ListModels(pb.ListModelsRequest())
        except grpc.aio.AioRpcError as error:
            return error.code() is grpc.StatusCode.UNAUTHENTICATED
        return False
