"""Callers over HTTP of a server with a keyed network; every call stands in a journal."""

import asyncio
import time

from babelserve.v1.translation_pb2 import TranslateResponse
from tests.chaos.http1 import HttpConnection
from tests.chaos.journal import Journal
from tests.chaos.requests import keyed_requests

TIMEOUT_SECONDS = 10.0
_PREFIX_BYTES = 5


class HttpCallers:
    """Calls over HTTP as `tests.chaos.clients` makes them over gRPC.

    Args:
        connection: to the server.

    Attributes:
        journal: what became of the calls.
    """

    def __init__(self, connection: HttpConnection) -> None:
        self.journal = Journal()
        self._connection = connection
        self._requests = keyed_requests(200, seed=2)
        self._running: set[asyncio.Future[None]] = set()

    async def open(self, rate: float, seconds: float) -> None:
        """Makes so many calls a second, whatever becomes of them, and waits for all outcomes."""
        for _ in range(int(rate * seconds)):
            self.start()
            await asyncio.sleep(1.0 / rate)
        await self.settled()

    async def settled(self) -> None:
        """Waits for the outcomes of all calls that have begun, as long as these may take."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=TIMEOUT_SECONDS + 1.0)

    def start(self) -> None:
        """Makes a call."""
        index = len(self.journal.entries) % len(self._requests)
        entry = self.journal.open(index, time.perf_counter(), TIMEOUT_SECONDS)
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running.add(over)
        over.add_done_callback(self._running.discard)

        def ended(outcome: str, body: bytes, _: dict[bytes, bytes]) -> None:
            texts = [each.text for each in TranslateResponse.FromString(body[_PREFIX_BYTES:]).translations]
            is_right = texts == self._requests.expected[index] if body else None
            self.journal.close(entry, outcome, time.perf_counter(), is_right=is_right)
            over.set_result(None)

        message = self._requests.message(index, 1).SerializeToString()
        self._connection.call(bytes(_PREFIX_BYTES) + message, TIMEOUT_SECONDS, ended)
