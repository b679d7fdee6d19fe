"""Limits how many calls read their messages at once: every call for a moment (a look), few calls for longer (a turn).

Usually a call has its message as soon as it reads. If not, the message may be a long one that is still arriving, or one
that never comes; gRPC does not tell. While a look lasts, only as much of it can come as a network brings in that time.
After its look, a call takes a turn. There are few turns, because the whole message may come meanwhile. A call cannot
wait for a turn, because it cannot stop reading. If no turn is free, the reader that has had its turn for longest gives
it up, provided that it has had a fair time; else the new reader is ended.
"""

import asyncio
from collections import OrderedDict
from typing import Any

_LOOK_SECONDS = 0.05  # enough for a round trip, and for 64 KiB at 10 Mbit/s
_LATE_SECONDS = 0.01  # of the event loop, in which messages may have come that it has not seen yet
_MOST_LOOKS = 128
_FAIR_SECONDS = 0.5  # of a turn, before another call may have it


async def read_message(context: Any) -> Any:
    """Returns the message of a call, or `grpc.aio.EOF`. A cancelled caller leaves the reading to end with the call.

    grpc.aio drops a cancelled reading, but it drops the message only if that never comes. A message of up to 4 MiB that
    becomes whole before the call ends would stay in memory for ever.
    """
    reading = asyncio.create_task(context.read())  # gRPC holds it until it ends
    reading.add_done_callback(lambda done: done.cancelled() or done.exception())  # else asyncio logs its error
    return await asyncio.shield(reading)


class Turns:
    """Reads messages, on the event loop's thread.

    Args:
        most: the number of turns.
        patience_seconds: the time within which a message must be whole.
        look_seconds: how long a message is read without a turn.
        most_looks: how many looks are taken at once; other calls wait.
        fair_seconds: after so long a turn is given up if another call needs one.
    """

    def __init__(
        self,
        most: int,
        patience_seconds: float,
        look_seconds: float = _LOOK_SECONDS,
        most_looks: int = _MOST_LOOKS,
        fair_seconds: float = _FAIR_SECONDS,
    ) -> None:
        self._most = most
        self._patience_seconds = patience_seconds
        self._look_seconds = min(look_seconds, patience_seconds)
        self._fair_seconds = fair_seconds
        self._looks = asyncio.Semaphore(most_looks)
        self._looking: dict[asyncio.Timeout, asyncio.TimerHandle] = {}  # looks, and what ends each
        self._taken: OrderedDict[asyncio.Timeout, float] = OrderedDict()  # turns, oldest first, and since when

    async def read(self, context: Any) -> Any:
        """Returns the message of a call, or `grpc.aio.EOF`. Raises TimeoutError if it is not whole in time."""
        await self._looks.acquire()
        limit = asyncio.timeout(None)
        self._look(limit)
        try:
            async with limit:
                return await read_message(context)
        finally:
            self._taken.pop(limit, None)
            if (end := self._looking.pop(limit, None)) is not None:
                end.cancel()
                self._looks.release()

    def _look(self, limit: asyncio.Timeout, *, is_second: bool = False) -> None:
        loop = asyncio.get_running_loop()
        self._looking[limit] = loop.call_later(self._look_seconds, self._take_turn, limit, is_second)

    def _take_turn(self, limit: asyncio.Timeout, is_second: bool) -> None:
        """Gives a turn to a reader whose look is over. If no turn is free, it ends this reader or another one.

        Where the event loop was kept from seeing what has come, the reader looks once more.
        """
        now = asyncio.get_running_loop().time()
        if now - self._looking.pop(limit).when() > _LATE_SECONDS and not is_second:
            self._look(limit, is_second=True)
            return
        self._looks.release()
        if len(self._taken) >= self._most:
            oldest, since = next(iter(self._taken.items()))
            if now - since < self._fair_seconds:
                limit.reschedule(now)
                return
            del self._taken[oldest]
            if not oldest.expired():  # its own time may have ended in this very turn of the loop
                oldest.reschedule(now)
        self._taken[limit] = now
        limit.reschedule(now + self._patience_seconds - self._look_seconds)
