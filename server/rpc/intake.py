"""Takes requests' messages off their streams: few at a time, so that unfinished ones take little memory.

gRPC invites all of a message as soon as somebody reads it, and keeps what arrives until it is whole; of one that nobody
reads it takes no more than a window. So few calls may read for longer than a moment (`server.rpc.turns`), in which a
message is there, unless it is longer than the window, or its sender dawdles. Connections that have dawdled once take
turns of their own from then on, and get more time there: they keep nobody else waiting.

A long message costs the event loop up to 20 ms to take over and parse, whatever becomes of it then. Connections that
have sent much of late share one turn, which lasts as long as their common rate allows. And whoever they are from, long
messages that come at once are parsed one after the other, with time between for all that is short.

For that the methods are registered as if clients sent streams: on the wire, a stream of one message is the same, and
only such a handler reads by itself.
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
from server.translation.memory import MemoryBudget, answer_need, message_need

MAX_MESSAGE_BYTES = 4 << 20
_MEMORY_PARTS = 8  # of the process's memory messages that are being read may take one
_LEAST_TURNS, _MOST_TURNS = 8, 64
_SLOW_PARTS = 4  # of all turns connections that have dawdled have one
_TURNS_OF_CONNECTION = 2
_PATIENCE_SECONDS = 3.0  # for a message to be whole; far more than a busy event loop needs
_SLOW_SECONDS = 20.0  # the same, of a connection that has dawdled
_MOST_KNOWN = 4096  # connections that have dawdled, or sent much; the oldest are forgiven
_HEAVY_BYTES = 1 << 20  # that a connection may send at once before that is much
_STEADY_RATE = 1 << 20  # bytes a second that are forgotten of what a connection has sent
_HEAVY_RATE = 1 << 20  # bytes a second of all connections that have sent much: 1 % of the loop's time, and more
# than lanes translate
_LIGHT_BYTES = 16 << 10  # of messages that do not count
_LONG_RATE = 32 << 20  # bytes a second of all messages that count: a quarter of the loop's time


def messages_at_once(process_bytes: int) -> int:
    """Returns how many messages may be read at once by a process that may take so much memory."""
    return min(_MOST_TURNS, max(_LEAST_TURNS, process_bytes // (_MEMORY_PARTS * MAX_MESSAGE_BYTES)))


class _Sent(NamedTuple):
    """What a connection has sent, as of an instant, less what is forgotten."""

    num_bytes: float
    instant: float

    def now(self) -> float:
        return max(0.0, self.num_bytes - (time.monotonic() - self.instant) * _STEADY_RATE)


class Intake:
    """Reads messages, on the event loop's thread.

    Args:
        memory: of all requests; a message's part is held until its call ends.
        max_messages: that are read for longer than a moment at once.
        patience_seconds: in which a message has to be whole.
        slow_seconds: the same, for connections that have once taken longer.
    """

    def __init__(
        self,
        memory: MemoryBudget,
        max_messages: int,
        patience_seconds: float = _PATIENCE_SECONDS,
        slow_seconds: float = _SLOW_SECONDS,
    ) -> None:
        self._memory = memory
        self._patience_seconds = patience_seconds
        self._slow_seconds = slow_seconds
        self._num_slow = max_messages // _SLOW_PARTS
        self._turns = Turns(max_messages - self._num_slow, patience_seconds)
        self._slow_turns = asyncio.Semaphore(self._num_slow)
        self._turns_of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()  # a connection
        self._slow: OrderedDict[str, None] = OrderedDict()  # connections, by gRPC's name of the peer
        self._heavy_turn = asyncio.Semaphore(1)
        self._sent: OrderedDict[str, _Sent] = OrderedDict()  # by connections, as above
        self._long_turn = asyncio.Lock()
        self._next_long = -math.inf  # instant from which a long message may be parsed

    def hold(self, message: bytes) -> AbstractContextManager[None]:
        """Holds the memory that a message needs. Raises as `MemoryBudget.hold` does."""
        return self._memory.hold(message_need(len(message)))

    async def wait_to_parse(self, message: bytes) -> None:
        """Waits until a message that is held may be parsed: a short one at once, long ones one after the other."""
        if len(message) > _LIGHT_BYTES:
            async with self._long_turn:
                await asyncio.sleep(self._next_long - time.monotonic())
                self._next_long = time.monotonic() + len(message) / _LONG_RATE

    def keep(self, answer: bytes, context: Any) -> None:
        """Counts the memory of an answer until gRPC has sent it, or dropped it."""
        give_back = self._memory.keep(answer_need(len(answer)))
        context.add_done_callback(lambda _: give_back())

    async def read(self, context: Any) -> bytes:
        """Returns the message of a call.

        Raises:
            InvalidRequest: the call ended without one.
            Overloaded: it was not whole in time.
            CancelledError: the call is over. So gRPC ends one whose message is too long, and does not say why. As the
                end of the messages may be seen before that of the call, `InvalidRequest` may be raised for it too.
        """
        try:
            return await self._read_in_turn(context, context.peer())
        except (asyncio.CancelledError, InvalidRequest):
            add_facts(unread=f"the caller left, or its message has more than {MAX_MESSAGE_BYTES} bytes")
            raise

    async def _read_in_turn(self, context: Any, peer: str) -> bytes:
        if peer not in self._slow and self._is_heavy(peer):
            async with self._heavy_turn:
                if peer not in self._slow:  # another call may have dawdled meanwhile
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
        if num_bytes > _LIGHT_BYTES:
            sent = self._sent.pop(peer, None)
            self._sent[peer] = _Sent(num_bytes + (sent.now() if sent else 0.0), time.monotonic())
            if len(self._sent) > _MOST_KNOWN:
                self._sent.popitem(last=False)
