"""Takes requests' messages off their streams: few at a time, so that unfinished ones take little memory.

gRPC reserves room for all of a message as soon as somebody reads it, and keeps what arrives until it is whole; of one that
nobody reads it takes no more than a window. So a call waits for its turn to read. Its message is whole by then, unless it
is longer than the window, or its sender dawdles. Connections that have dawdled once take turns of their own from then on,
and get more time there: they keep nobody else waiting.

For that the methods are registered as if clients sent streams: on the wire, a stream of one message is the same, and only
such a handler reads by itself.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

import grpc

from server.errors import InvalidRequest, Overloaded
from server.translation.memory import MemoryBudget, message_need

MAX_MESSAGE_BYTES = 4 << 20
MAX_BEING_READ = 16  # messages, half of them by connections that have dawdled
_PATIENCE_SECONDS = 1.0  # for a message to be whole
_SLOW_SECONDS = 20.0  # the same, of a connection that has dawdled
_MOST_SLOW = 4096  # connections that are known to; the oldest are forgiven


class Intake:
    """Reads messages, on the event loop's thread.

    Args:
        memory: of all requests; a message's part is held until its call ends.
        patience_seconds: in which a message has to be whole.
        slow_seconds: the same, for connections that have once taken longer.
    """

    def __init__(
        self,
        memory: MemoryBudget,
        patience_seconds: float = _PATIENCE_SECONDS,
        slow_seconds: float = _SLOW_SECONDS,
    ) -> None:
        self._memory = memory
        self._patience_seconds = patience_seconds
        self._slow_seconds = slow_seconds
        self._turns = asyncio.Semaphore(MAX_BEING_READ // 2)
        self._slow_turns = asyncio.Semaphore(MAX_BEING_READ // 2)
        self._slow: OrderedDict[str, None] = OrderedDict()  # connections, by gRPC's name of the peer

    @contextlib.asynccontextmanager
    async def message(self, context: Any) -> AsyncIterator[bytes]:
        """Yields the message of a call, which ends with the block.

        Raises:
            InvalidRequest: the call ended without one, or there can never be enough memory for it.
            Overloaded: it was not whole in time, or there is not enough memory.
        """
        data = await self._take_turn(context)
        with self._memory.hold(message_need(len(data))):
            yield data

    async def _take_turn(self, context: Any) -> bytes:
        peer: str = context.peer()
        if peer not in self._slow:
            async with self._turns:
                if peer not in self._slow:  # another call may have dawdled meanwhile
                    return await self._read(context, peer, self._patience_seconds)
        async with self._slow_turns:
            return await self._read(context, peer, self._slow_seconds)

    async def _read(self, context: Any, peer: str, seconds: float) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                message = await context.read()
        except TimeoutError:
            self._slow[peer] = None
            if len(self._slow) > _MOST_SLOW:
                self._slow.popitem(last=False)
            raise Overloaded(f"the message was not whole within {seconds:g} seconds", "unfinished") from None
        if message is grpc.aio.EOF:
            raise InvalidRequest("request", "is missing: the call ended without a message")
        data: bytes = message
        return data
