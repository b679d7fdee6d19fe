"""The server behind the gateway: the channel to it, and what its health says.

gRPC reads a client's certificate once for a channel. So new certificates come with a new channel, and the old one ends
with its last call.
"""

import asyncio
import json
import logging
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.glossary_store_pb2_grpc import GlossaryStoreStub
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.rpc.intake import MAX_MESSAGE_BYTES

logger = logging.getLogger(__name__)

SERVICE = "babelserve.v1.TranslationService"
# From the begin of a watch to that of the next, for the first answer of each, and for the call that asks about keys.
# Half, and many gateways call a server that starts twice as often. Twice, and the gateway is out of service for longer
# than its server.
_AGAIN_SECONDS = 1.0
_SILENCE = "no answer in time"
_LONGEST_SECONDS = 3600.0  # of a call, such as the texts of a document
# By another replica, where the first has ended: translating twice does no harm. What is kept is not in this service,
# and a refusal (RESOURCE_EXHAUSTED) is left to the gateway's callers, whom the server tells when to come back.
_RETRIES = {
    "maxAttempts": 3,
    "initialBackoff": "0.05s",
    "maxBackoff": "0.5s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}
_OPTIONS = {
    "grpc.max_receive_message_length": 64 << 20,  # answers are longer than requests
    "grpc.per_rpc_retry_buffer_size": MAX_MESSAGE_BYTES,  # a longer request is not sent again
    # To a server that starts anew; gRPC's own maximum is two minutes. Half, and many gateways call a server that starts
    # twice as often. Twice, and the gateway is out of service for longer than its server.
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 2_000,
    "grpc.keepalive_time_ms": 60_000,  # a server that is gone without a word; the server lets clients ask each 30 s
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.service_config": json.dumps(
        {
            "loadBalancingConfig": [{"round_robin": {}}],
            "healthCheckConfig": {"serviceName": SERVICE},
            "methodConfig": [{"name": [{"service": SERVICE}], "retryPolicy": _RETRIES}],
        }
    ),
}


class Upstream:
    """A server, or all replicas behind a name.

    Args:
        target: as gRPC takes it, such as "localhost:50051" or "dns:///name:50051".
        credentials: of TLS; None for none.
        server_name: that the server's certificate has, where it is not the target's.

    Attributes:
        translation: calls of `babelserve.v1.TranslationService`.
        store: those of `babelserve.v1.GlossaryStore`.
        is_serving: whether it takes requests, by its own word.
        asks_for_key: whether it refuses callers without a key.
    """

    def __init__(
        self, target: str, credentials: grpc.ChannelCredentials | None = None, server_name: str | None = None
    ) -> None:
        self._target = target
        self._options: Any = [*_OPTIONS.items()]
        if server_name is not None:
            self._options.append(("grpc.ssl_target_name_override", server_name))
        self._watch: Any = None
        self._ending: set[asyncio.Task[None]] = set()
        self._open(credentials)
        self.is_serving = False
        self.asks_for_key = False

    def renew(self, credentials: grpc.ChannelCredentials) -> None:
        """Has new calls go with other credentials; those under way go on."""
        ending = asyncio.create_task(self._channel.close(_LONGEST_SECONDS))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        self._open(credentials)
        if self._watch is not None:
            self._watch.cancel()

    async def close(self) -> None:
        """Ends all calls."""
        for ending in self._ending:
            ending.cancel()
        await self._channel.close(None)

    def _open(self, credentials: grpc.ChannelCredentials | None) -> None:
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(self._target, self._options)
        else:
            self._channel = grpc.aio.secure_channel(self._target, credentials, self._options)
        self.translation: Any = TranslationServiceStub(self._channel)
        self.store: Any = GlossaryStoreStub(self._channel)

    async def watch(self) -> None:
        """Follows the health of the server, for ever. Where it cannot, it says why once, and tries again.

        A watch hears one replica, until that ends the connection at some age. So what it has said holds until the next
        one says something else, fails, or says nothing for a second. When the replica stops serving, the next watch
        begins: the channel has its calls answered by the replicas that serve, and fails a call if none does.
        """
        told, loop = "", asyncio.get_running_loop()
        while True:
            channel, next_begin = self._channel, loop.time() + _AGAIN_SECONDS
            try:
                why = await self._follow(next_begin)
            except asyncio.CancelledError:
                if channel is self._channel:
                    raise
            if channel is not self._channel:  # what the old one has said holds until the new one says otherwise
                continue
            if why:
                self.is_serving = False
                if told in ("", _SILENCE) and why != told:
                    logger.warning("the server's health cannot be followed: %s", why)
                    told = why
            else:
                told = ""
            await asyncio.sleep(next_begin - loop.time())

    async def _follow(self, deadline: float) -> str:
        """Follows the health of one replica, as long as it serves.

        Args:
            deadline: for the first answer, by the clock of the event loop.

        Returns:
            Why no replica serves; "" if one has served, or others may.
        """
        has_served, why = False, "the server ended its answer"
        stub: Any = HealthStub(self._channel)
        self._watch = stub.Watch(HealthCheckRequest(service=SERVICE))
        try:
            async with asyncio.timeout_at(deadline) as patience:
                async for answer in self._watch:
                    if answer.status != HealthCheckResponse.SERVING:
                        self._watch.cancel()
                        return ""
                    patience.reschedule(None)
                    await self._learn_of_keys()
                    has_served = self.is_serving = True
        except TimeoutError:
            why = _SILENCE
        except grpc.aio.AioRpcError as error:
            why = f"{error.code().name}: {error.details()}"
        return "" if has_served else why

    async def _learn_of_keys(self) -> None:
        """Asks the server for its models without a key. A call that fails otherwise than for the key says nothing."""
        try:
            await self.translation.ListModels(pb.ListModelsRequest(), timeout=_AGAIN_SECONDS)
            self.asks_for_key = False
        except grpc.aio.AioRpcError as error:
            self.asks_for_key = self.asks_for_key or error.code() is grpc.StatusCode.UNAUTHENTICATED
