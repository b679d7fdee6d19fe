"""Models are loaded one at a time, each once for however many wait for it, and stay until those have borrowed it."""

import asyncio
from collections.abc import Awaitable, Callable

_TURNS_TO_BORROW = 4  # of the event loop: two until those who wait for a model go on, and some to spare


class LoadingTurns:
    """Who is loaded next, on the event loop's thread.

    Args:
        load: loads a model, which may take long, and may have others leave.
    """

    def __init__(self, load: Callable[[str], Awaitable[None]]) -> None:
        self._load = load
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()

    async def wait_for(self, name: str) -> None:
        """Has a model loaded; whoever leaves meanwhile ends nothing. Raises as `load` does."""
        if name not in self._loading:
            task = self._loading[name] = asyncio.create_task(self._take_turn(name))
            task.add_done_callback(lambda done: (self._loading.pop(name), done.cancelled() or done.exception()))
        await asyncio.shield(self._loading[name])

    async def _take_turn(self, name: str) -> None:
        await self._turn.acquire()
        try:
            await self._load(name)
        finally:
            self._end_turn()

    def _end_turn(self, turns_of_loop: int = _TURNS_TO_BORROW) -> None:
        """Lets the next one begin once whoever has waited for this model goes on.

        It would make a model leave that nobody has borrowed yet: where there is room for one, two would be loaded in
        turn for ever, and neither used.
        """
        if turns_of_loop:
            asyncio.get_running_loop().call_soon(self._end_turn, turns_of_loop - 1)
        else:
            self._turn.release()
