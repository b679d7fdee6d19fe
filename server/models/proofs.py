"""Decides which bundle of the folder of models is proved next, and remembers what was found.

One is proved at a time, so that all together take the time of one core and the memory of one. What has come last goes
first, and before all that has been tried before. A proof that takes longer than a turn is ended if another bundle waits
that has not been tried yet, and is tried again after it: so bundles that never end keep no good one waiting.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from server.children import Bounds
from server.models.folder import FoundBundle
from server.models.proof import Unproved, prove

logger = logging.getLogger(__name__)

# Half ends the proofs of good bundles more often while many come in; twice lets each of them wait so much longer.
_TURN_SECONDS = 1.0
_LOOK_SECONDS = 0.05
_MOST_REMEMBERED = 1000  # proofs; what is forgotten is proved again if it is asked for again


class Task(NamedTuple):
    """What is to be proved of a bundle: one variant, within bounds."""

    bundle: FoundBundle
    variant: str
    bounds: Bounds


class Finding(NamedTuple):
    """What a proof has found.

    Attributes:
        faults: nothing if the bundle is good.
        is_sure: whether the proof has come to its end. A proof that was late or killed says nothing sure.
    """

    faults: list[str]
    is_sure: bool = True


class _Waiting:
    """A task, how often it has been begun, whether the folder wants it, and how many callers wait for its end."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.num_tries = 0
        self.is_wanted = False
        self.num_waiters = 0
        self.ended = asyncio.Event()


class Proofs:
    """Used on the event loop's thread, but for `found` and `forget`, which any thread may call.

    Args:
        prove: as `server.models.proof.prove`.
        clock: seconds, monotonic.

    Attributes:
        news: is set whenever a proof has come to its end. The watch of the folder clears it.
    """

    def __init__(
        self,
        prove: Callable[..., Awaitable[list[str]]] = prove,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prove = prove
        self._clock = clock
        self._found: dict[FoundBundle, Finding] = {}
        self._waiting: dict[FoundBundle, _Waiting] = {}
        self._runner: asyncio.Task[None] | None = None
        self.news = asyncio.Event()

    def found(self, bundle: FoundBundle) -> Finding | None:
        """Returns what the last proof of a bundle has found; None without any."""
        return self._found.get(bundle)

    def forget(self, bundle: FoundBundle) -> None:
        """Forgets what was found, so that the bundle is proved again before it is loaded."""
        self._found.pop(bundle, None)

    def want(self, tasks: Sequence[Task]) -> None:
        """Says what is to be proved, in place of what was wanted before; what nobody wants any more is given up."""
        for each in self._waiting.values():
            each.is_wanted = False
        for task in tasks:
            self._add(task).is_wanted = True
        for bundle in [each for each, waiting in self._waiting.items() if not _is_asked_for(waiting)]:
            del self._waiting[bundle]

    async def wait_for(self, task: Task) -> None:
        """Has a task done, known or not, and waits for its end."""
        waiting = self._add(task)
        waiting.num_waiters += 1
        try:
            await waiting.ended.wait()
        finally:
            waiting.num_waiters -= 1
            if not _is_asked_for(waiting) and self._waiting.get(task.bundle) is waiting:  # and not a later one
                del self._waiting[task.bundle]

    def _add(self, task: Task) -> _Waiting:
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return self._waiting.setdefault(task.bundle, _Waiting(task))

    async def _run(self) -> None:
        while self._waiting:
            await self._take_turn(min(self._waiting.values(), key=_rank))

    async def _take_turn(self, waiting: _Waiting) -> None:
        bundle, variant, bounds = waiting.task
        started = self._clock()
        waiting.num_tries += 1
        proving = asyncio.ensure_future(self._prove(bundle.directory, variant, bounds))
        try:
            while not proving.done() and not self._gives_way(waiting, self._clock() - started):
                await asyncio.wait({proving}, timeout=_LOOK_SECONDS)
            if not proving.done():
                return
            try:
                found = Finding(proving.result())
            except Unproved as error:
                found = Finding(error.faults, is_sure=False)
            except Exception as error:  # a fault of ours; the other bundles go on
                logger.exception("models: a bundle could not be proved")
                fault = f"{bundle.directory}: proving it failed: {type(error).__name__}"
                found = Finding([fault], is_sure=False)
            self._found[bundle] = found
            for oldest in [*self._found][:-_MOST_REMEMBERED]:
                self.forget(oldest)
            self._waiting.pop(bundle, None)
            waiting.ended.set()
            self.news.set()
        finally:
            proving.cancel()
            await asyncio.wait({proving})  # has killed its process by then

    def _gives_way(self, waiting: _Waiting, seconds: float) -> bool:
        is_gone = self._waiting.get(waiting.task.bundle) is not waiting
        has_new = any(not each.num_tries for each in self._waiting.values())
        return is_gone or (seconds >= _TURN_SECONDS and has_new)


def _is_asked_for(waiting: _Waiting) -> bool:
    return waiting.is_wanted or waiting.num_waiters > 0


def _rank(waiting: _Waiting) -> tuple[int, int, int]:
    return waiting.num_tries, -waiting.num_waiters, -newest(waiting.task.bundle)


def newest(bundle: FoundBundle) -> int:
    """Returns when the last of a bundle's files came, in nanoseconds."""
    return max((file[4] for file in bundle.stamp), default=0)
