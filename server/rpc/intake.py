"""Reads the messages of requests from their streams.

Few messages are read at a time, so that unfinished ones take little memory.

As soon as a handler reads, gRPC lets the client send all of a message, and keeps what arrives until the message is
whole. Of a message that no handler reads, gRPC takes no more than a window. So few calls may read for longer than a
moment (`server.rpc.turns`). A moment is enough for a message unless it is longer than the window or its sender is slow.
A connection that has been slow once takes turns of its own from then on, and gets more time there. So it keeps no other
connection waiting.

A long message keeps the event loop busy while it is taken over and parsed, whatever becomes of it then. Connections
that have sent much lately share one turn, which lasts as long as their common rate allows. And long messages that come
at the same time are parsed one after the other, with pauses for everything short.

The methods are registered as if clients sent streams, because only such a handler reads its messages itself. On the
wire, a stream of one message is the same as one message.
"""

import asyncio
import math
import time
from collections import OrderedDict
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import grpc

from server.errors import InvalidRequest, Overloaded
from server.rpc.turns import Turns, read_message
from server.telemetry.log import add_facts
from server.translation.long_messages import LIGHT_BYTES, LongMessages
from server.translation.memory import MemoryBudget, answer_need, message_need

MAX_MESSAGE_BYTES = 4 << 20
_MEMORY_PARTS = 8  # messages that are being read may take one of so many parts of the process's memory
HEALTH_MESSAGES = 4  # of health calls, which are read at once
_LEAST_TURNS, _MOST_TURNS = 8 + HEALTH_MESSAGES, 64
_SLOW_PARTS = 4  # slow connections have one of so many parts of all turns
_TURNS_OF_CONNECTION = 2
_PATIENCE_SECONDS = 3.0  # for a message to become whole; far more than a busy event loop needs
_SLOW_SECONDS = 20.0  # the same, for a connection that has been slow
_MOST_KNOWN = 4096  # connections that have been slow, or have sent much; the oldest are forgotten
_HEAVY_BYTES = 1 << 20  # that a connection may send at once before it has sent much
_STEADY_RATE = 1 << 20  # bytes a second by which what a connection has sent fades
_HEAVY_RATE = 1 << 20  # bytes a second of all connections that have sent much: 1 % of the loop's time, and more
# than lanes translate


def messages_at_once(process_bytes: int) -> int:
    """Returns how many messages a process may read at once, those of health included, if it may take so many bytes."""
    return min(_MOST_TURNS, max(_LEAST_TURNS, process_bytes // (_MEMORY_PARTS * MAX_MESSAGE_BYTES)))


class _Sent(NamedTuple):
    """The bytes that a connection has sent, at an instant. They fade with time."""

    num_bytes: float
    instant: float

    def now(self) -> float:
        return max(0.0, self.num_bytes - (time.monotonic() - self.instant) * _STEADY_RATE)


class Intake:
    """Reads messages, on the event loop's thread.

    Args:
        memory: counts the memory of all requests. A message's part is held until its call ends.
        max_messages: how many messages may be read for longer than a moment at once.
        patience_seconds: the time within which a message must be whole.
        slow_seconds: the same, for connections that have once taken longer.
        long_messages: says when a long one may be parsed; None where no other front is served.
    """

    def __init__(
        self,
        memory: MemoryBudget,
        max_messages: int,
        patience_seconds: float = _PATIENCE_SECONDS,
        slow_seconds: float = _SLOW_SECONDS,
        long_messages: LongMessages | None = None,
    ) -> None:
        self._memory = memory
        self._patience_seconds = patience_seconds
        self._slow_seconds = slow_seconds
        self._num_slow = max_messages // _SLOW_PARTS
        self._turns = Turns(max_messages - self._num_slow, patience_seconds)
        self._slow_turns = asyncio.Semaphore(self._num_slow)
        self._turns_of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()  # of a connection
        self._slow: OrderedDict[str, None] = OrderedDict()  # slow connections, by gRPC's name of the peer
        self._heavy_turn = asyncio.Semaphore(1)
        self._sent: OrderedDict[str, _Sent] = OrderedDict()  # by the same names
        self._long_messages = long_messages or LongMessages()

    def hold(self, message: bytes) -> AbstractContextManager[None]:
        """Holds the memory that a message needs. Raises as `MemoryBudget.hold` does."""
        return self._memory.hold(message_need(len(message)))

    async def wait_to_parse(self, message: bytes) -> None:
        """Waits until a held message may be parsed: a short one at once, long ones one after the other."""
        await self._long_messages.wait_to_parse(len(message))

    def keep(self, answer: bytes, context: Any) -> None:
        """Counts the memory of an answer until gRPC has sent or dropped it."""
        give_back = self._memory.keep(answer_need(len(answer)))
        context.add_done_callback(lambda _: give_back())

    async def read(self, context: Any) -> bytes:
        """Returns the message of a call.

        Raises:
            InvalidRequest: the call ended without a message.
            Overloaded: the message was not whole in time.
            CancelledError: the call is over. gRPC also ends a call so if its message is too long, and does not say why.
                `InvalidRequest` may be raised for such a call too, because the end of its messages may be seen before
                the end of the call.
        """
        try:
            return await self._read_in_turn(context, context.peer())
        except (asyncio.CancelledError, InvalidRequest):
            add_facts(unread=f"the caller left, or its message has more than {MAX_MESSAGE_BYTES} bytes")
            raise

    async def read_next(self, context: Any) -> bytes | None:
        """Returns the next message of a call that sends many, after the first one; None at their end.

        It waits for as long as the caller takes. gRPC may keep nearly all of a message meanwhile, so the call must hold
        the memory of the longest one.
        """
        message = await read_message(context)
        if message is grpc.aio.EOF:  # type: ignore[attr-defined]
            return None
        data: bytes = message
        peer = context.peer()
        self._note(peer, len(data))
        if self._is_heavy(peer):
            await asyncio.sleep(len(data) / _HEAVY_RATE)
        await self.wait_to_parse(data)
        return data

    async def _read_in_turn(self, context: Any, peer: str) -> bytes:
        if peer not in self._slow and self._is_heavy(peer):
            async with self._heavy_turn:
                if peer not in self._slow:  # another call of the connection may have been slow meanwhile
                    return await self._read(context, peer, _HEAVY_RATE)
        if peer not in self._slow:
            own_turns = self._turns_of.get(peer)
            if own_turns is None:
                own_turns = self._turns_of[peer] = asyncio.Semaphore(_TURNS_OF_CONNECTION)
            async with own_turns:
                if peer not in self._slow:
                    return await self._read(context, peer)
        async with self._slow_turns:
            return await self._read(context, peer, _HEAVY_RATE / self._num_slow)

    async def _read(self, context: Any, peer: str, heavy_rate: float = math.inf) -> bytes:
        is_slow = peer in self._slow
        try:
            message = await (self._read_slowly(context) if is_slow else self._turns.read(context))
        except TimeoutError:
            self._slow[peer] = None
            if len(self._slow) > _MOST_KNOWN:
                self._slow.popitem(last=False)
            seconds = self._slow_seconds if is_slow else self._patience_seconds
            message = f"the message was not whole in time, at most {seconds:g} seconds"
            raise Overloaded(message, "unfinished") from None
        if message is grpc.aio.EOF:  # type: ignore[attr-defined]
            raise InvalidRequest("request", "is missing: the call ended before a message was read")
        data: bytes = message
        self._note(peer, len(data))
        if self._is_heavy(peer):
            await asyncio.sleep(len(data) / heavy_rate)
        return data

    async def _read_slowly(self, context: Any) -> Any:
        async with asyncio.timeout(self._slow_seconds):
            return await read_message(context)

    def _is_heavy(self, peer: str) -> bool:
        sent = self._sent.get(peer)
        return sent is not None and sent.now() > _HEAVY_BYTES

    def _note(self, peer: str, num_bytes: int) -> None:
        if num_bytes > LIGHT_BYTES:
            sent = self._sent.pop(peer, None)
            self._sent[peer] = _Sent(num_bytes + (sent.now() if sent else 0.0), time.monotonic())
            if len(self._sent) > _MOST_KNOWN:
                self._sent.popitem(last=False)
