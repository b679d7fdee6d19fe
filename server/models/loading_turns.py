"""Loads models one at a time, each once for all requests that wait for it.

A model is proved before its turn, so that a proof keeps no other model waiting, and no model is unloaded for one that
is not good. A loaded model stays in memory until the requests that waited for it have borrowed it.
"""

import asyncio
from collections.abc import Awaitable, Callable

_TURNS_TO_BORROW = 4  # of the event loop: two until the requests that wait for a model go on, and two to spare


class LoadingTurns:
    """Decides which model is loaded next, on the event loop's thread.

    Args:
        prove: raises an error if a model cannot be loaded. It may take long.
        load: loads a model. It may take long, and may unload others.
    """

    def __init__(self, prove: Callable[[str], Awaitable[None]], load: Callable[[str], Awaitable[None]]) -> None:
        self._prove = prove
        self._load = load
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()

    async def wait_for(self, name: str) -> None:
        """Waits until a model is loaded. A caller that leaves does not end the loading. Raises as both functions do."""
        if name not in self._loading:
            task = self._loading[name] = asyncio.create_task(self._take_turn(name))
            task.add_done_callback(lambda done: (self._loading.pop(name), done.cancelled() or done.exception()))
        await asyncio.shield(self._loading[name])

    async def _take_turn(self, name: str) -> None:
        await self._prove(name)
        await self._turn.acquire()
        try:
            await self._load(name)
        finally:
            self._end_turn()

    def _end_turn(self, turns_of_loop: int = _TURNS_TO_BORROW) -> None:
        """Lets the next load begin, after the requests that waited for this model have had time to borrow it.

        An earlier load would unload this model before any request has borrowed it. With room for only one model, two
        models would be loaded in turn for ever, and neither used.
        """
        if turns_of_loop:
            asyncio.get_running_loop().call_soon(self._end_turn, turns_of_loop - 1)
        else:
            self._turn.release()
