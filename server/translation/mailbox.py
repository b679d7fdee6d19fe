"""What other threads hand to the event loop."""

import asyncio
import contextlib
from collections import deque
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Mailbox(Generic[_T]):
    """A queue that any thread fills and one task of the event loop empties.

    However much comes before the loop has its turn, it is woken once: a wake is a system call, of the thread that puts.
    Nor is it woken before as much has come as the task waits for.
    """

    def __init__(self) -> None:
        self._items: deque[_T] = deque()
        self._has_items = asyncio.Event()
        self._is_woken = False  # `_wake` will be called
        self._wanted = 1  # items that the task waits for

    def put(self, item: _T, loop: asyncio.AbstractEventLoop) -> None:
        """Adds an item for a task of a loop, always the same; once that is closed, for nobody."""
        self._items.append(item)
        if len(self._items) >= self._wanted and not self._is_woken:
            self._is_woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._wake)

    async def get(self, wanted: int = 1) -> _T:
        """Removes the next item; if there is none, waits for so many, which must be sure to come."""
        self._wanted = wanted  # before anybody looks what is there, as whoever puts looks here after
        while not self._items:
            self._has_items.clear()
            await self._has_items.wait()
        return self._items.popleft()

    def _wake(self) -> None:
        self._is_woken = False  # before anybody looks what is there: whoever comes later wakes again
        self._has_items.set()
