"""Hands items from other threads to the event loop."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Doorbell:
    """Wakes the event loop for all mailboxes, only once for all items that come before its turn.

    Waking the loop is a system call, during which the calling thread loses the interpreter's lock to others.
    """

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self._is_rung = False  # True while a call of `_answer` is pending

    def ring(self, call: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        """Makes a loop, always the same one, call a function soon. After the loop is closed, nothing is called."""
        self._calls.append(call)
        if not self._is_rung:
            self._is_rung = True
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._is_rung = False  # before the mailboxes are read, so that a later item rings again
        while self._calls:
            self._calls.popleft()()


class Mailbox(Generic[_T]):
    """A queue that any thread fills and one task of the event loop empties.

    The loop is woken only when as many items have come as the task waits for.
    """

    def __init__(self, doorbell: Doorbell) -> None:
        self._doorbell = doorbell
        self._items: deque[_T] = deque()
        self._has_items = asyncio.Event()
        self._wanted = 1  # items that the task waits for

    def put(self, item: _T, loop: asyncio.AbstractEventLoop) -> None:
        """Adds an item for a task of a loop, always the same one. After the loop is closed, the item is lost."""
        self._items.append(item)
        if len(self._items) >= self._wanted:
            self._doorbell.ring(self._has_items.set, loop)

    async def get(self, wanted: int = 1) -> _T:
        """Removes and returns the next item.

        Args:
            wanted: if there is no item, the task waits until so many have come. They must be sure to come.
        """
        self._wanted = wanted  # set before the items are read, because `put` adds an item and then reads this
        while not self._items:
            self._has_items.clear()
            await self._has_items.wait()
        return self._items.popleft()
