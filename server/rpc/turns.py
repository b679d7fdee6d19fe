"""How many calls read their messages at once: everybody for a moment (a look), few for longer (a turn).

Whoever begins to read has the message at once, as a rule; else it may be anything from a long message on its way to one
that never comes, and gRPC does not tell. While a look lasts no more of it can come than a network brings in that time.
Then it takes a turn, of which there are few, since the whole message may come meanwhile. Nobody can wait for a turn:
who reads cannot stop. If there is none, the reader that has had its turn for longest gives it up, provided that it has
had a fair part of its time; else the newcomer leaves.
"""

import asyncio
from collections import OrderedDict
from typing import Any

_LOOK_SECONDS = 0.05  # a round trip, and 64 KiB at 10 Mbit/s
_MOST_LOOKS = 128
_FAIR_SECONDS = 0.5  # of a turn that others want


async def read_message(context: Any) -> Any:
    """Returns the message of a call, or `grpc.aio.EOF`; who is cancelled leaves the reading to end with the call.

    grpc.aio lets go of a reading that is cancelled, but of its message only if that never comes: one that is whole
    before the call ends, of up to 4 MiB, would stay in memory for ever.
    """
    reading = asyncio.create_task(context.read())  # gRPC holds it until it ends
    reading.add_done_callback(lambda done: done.cancelled() or done.exception())  # which is nobody's concern any more
    return await asyncio.shield(reading)


class Turns:
    """Reads messages, on the event loop's thread.

    Args:
        most: turns.
        patience_seconds: in which a message has to be whole.
        look_seconds: how long it is read without a turn.
        most_looks: that are taken at once; others wait.
        fair_seconds: of a turn, after which it is given up if somebody else needs one.
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
        self._taken: OrderedDict[asyncio.Timeout, float] = OrderedDict()  # turns, oldest first, and since when

    async def read(self, context: Any) -> Any:
        """Returns the message of a call, or `grpc.aio.EOF`. Raises TimeoutError if it is not whole in time."""
        await self._looks.acquire()
        limit = asyncio.timeout(None)
        over = asyncio.get_running_loop().call_later(self._look_seconds, self._take_turn, limit)
        try:
            async with limit:
                return await read_message(context)
        finally:
            over.cancel()
            self._taken.pop(limit, None)
            if limit.when() is None:  # still a look
                self._looks.release()

    def _take_turn(self, limit: asyncio.Timeout) -> None:
        """Gives a reader whose look is over a turn, or ends it or another one."""
        self._looks.release()
        now = asyncio.get_running_loop().time()
        if len(self._taken) >= self._most:
            oldest, since = next(iter(self._taken.items()))
            if now - since < self._fair_seconds:
                limit.reschedule(now)
                return
            del self._taken[oldest]
            oldest.reschedule(now)
        self._taken[limit] = now
        limit.reschedule(now + self._patience_seconds - self._look_seconds)
