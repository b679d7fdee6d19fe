"""How many sentences of a bulk call are under way."""

import asyncio
import contextlib
from collections.abc import Iterator

from server.translation.job import Job

# How many times the sentences that the engine runs at once a call has under way, those of groups that wait for their
# last answer included. With two thirds, lanes of `babelserve-bulk` ran out of texts again and again. Twice, and it
# holds twice as much.
_AHEAD = 3


class BulkWindow:
    """Counts the sentences of a call that are under way."""

    def __init__(self) -> None:
        self._most = 1
        self._num_sentences = 0
        self._has_fewer = asyncio.Event()

    def fit(self, job: Job) -> None:
        """Sets the size by the engines that run a job."""
        legs = [leg for route in job.routes for leg in route]
        self._most = _AHEAD * max(leg.model.engine.most_sentences(leg.options) for leg in legs)

    @contextlib.contextmanager
    def hold(self, num_sentences: int) -> Iterator[None]:
        """Counts sentences until the block is left."""
        self._num_sentences += num_sentences
        try:
            yield
        finally:
            self._num_sentences -= num_sentences
            self._has_fewer.set()

    async def wait_for_room(self) -> None:
        """Returns when there is room for a sentence."""
        while self._num_sentences >= self._most:
            self._has_fewer.clear()
            await self._has_fewer.wait()
