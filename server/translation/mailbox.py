"""What other threads hand to the event loop."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Doorbell:
    """Wakes the event loop for all mailboxes: once, however much comes before its turn.

    A wake is a system call, in which the thread that puts loses the interpreter's lock to others.
    """

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self._is_rung = False  # `_answer` will be called

    def ring(self, call: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        """Has a loop, always the same, call something soon; once it is closed, nobody does."""
        self._calls.append(call)
        if not self._is_rung:
            self._is_rung = True
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._is_rung = False  # before anybody looks what is there: whoever comes later rings again
        while self._calls:
            self._calls.popleft()()


class Mailbox(Generic[_T]):
    """A queue that any thread fills and one task of the event loop empties.

    The loop is not woken before as much has come as the task waits for.

    Args:
        doorbell: of the loop.
    """

    def __init__(self, doorbell: Doorbell) -> None:
        self._doorbell = doorbell
        self._items: deque[_T] = deque()
        self._has_items = asyncio.Event()
        self._wanted = 1  # items that the task waits for

    def put(self, item: _T, loop: asyncio.AbstractEventLoop) -> None:
        """Adds an item for a task of a loop, always the same; once that is closed, for nobody."""
        self._items.append(item)
        if len(self._items) >= self._wanted:
            self._doorbell.ring(self._has_items.set, loop)

    async def get(self, wanted: int = 1) -> _T:
        """Removes the next item; if there is none, waits for so many, which must be sure to come."""
        self._wanted = wanted  # before anybody looks what is there, as whoever puts looks here after
        while not self._items:
            self._has_items.clear()
            await self._has_items.wait()
        return self._items.popleft()
