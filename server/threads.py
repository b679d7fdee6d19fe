"""Priorities of threads, what they wait for in Python, and threads for work that may never end.

Where cores are scarce, the thread that answers calls goes first, even if it only refuses them.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
import platform
import queue
import struct
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar, cast

_T = TypeVar("_T")
_open: set[Callable[[], None]] = set()  # work of patient threads that has not ended

_SWITCH_SECONDS = 0.0005  # that a lane's Python may keep the event loop waiting; Python's own is 0.005
_COLLECT_AFTER = 2_000  # new containers; Python's own is 700
_SLICE_NANOSECONDS = 100_000  # of a core that the event loop has at a time while others want it: the kernel's least
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # numbers of the system call, which Python has no function for
_RESET_ON_FORK = 1  # a flag of it
LANE_NICENESS = 5  # of lanes, and of who loads a model
SPLITTER_NICENESS = 10  # of who splits long texts, that others wait for less


def be_nice(niceness: int) -> None:
    """Lowers the priority of the calling thread, unless it is lower already; on Linux each thread has its own.

    A thread whose priority is lowered takes no core away from another when it wakes, but waits for a slice to end.

    Args:
        niceness: 0 to 19, as of `setpriority(2)`: each step takes a fifth of what the thread gets of a busy core.
    """
    thread = threading.get_native_id()
    if os.getpriority(os.PRIO_PROCESS, thread) < niceness:  # to raise it is a privilege
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        if niceness and os.sched_getscheduler(thread) == os.SCHED_OTHER:  # no other one, which an operator has set
            os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))


def be_prompt() -> None:
    """Lets the calling thread mostly have a core as soon as it wakes, for a short while at a time.

    It gets no larger part of the cores by this. Since Linux 6.12, a thread that wakes takes a core from one with longer
    slices if it has had less than its part (see the kernel's page on its EEVDF scheduler). Without, the event loop
    waited for milliseconds until a lane left its core. Older kernels ignore the slice. Threads that the thread starts
    have the usual one.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    with contextlib.suppress(OSError):  # as in `be_nice`
        if number is not None and os.sched_getscheduler(0) == os.SCHED_OTHER:
            own = os.getpriority(os.PRIO_PROCESS, 0)
            layout = struct.Struct("=IIQiIQQQ")  # `struct sched_attr` of `sched_setattr(2)`
            attributes = layout.pack(layout.size, os.SCHED_OTHER, _RESET_ON_FORK, own, 0, _SLICE_NANOSECONDS, 0, 0)
            ctypes.CDLL(None).syscall(number, 0, attributes, 0)


def tune_interpreter() -> None:
    """Makes Python serve callers sooner, and spend less on its collector; to be called when all models are loaded.

    - Its collector of cycles leaves alone what is loaded, and comes by less often: all that a call leaves in cycles are
      five small objects of gRPC's. But everybody waits while it works: at ten times the capacity, 15 seconds each by
      turns, refusals' 99th percentile was 17 ms with 2,000 and 51 with 20,000 (medians of five and two, 2026-11-23).
      It does not look through what is loaded first: that takes 40 ms, before the first answer, and finds 42 objects.
    - A lane's Python gives way sooner to the event loop's: at ten times the capacity, with all on one core, refusals'
      99th percentile is 45 ms instead of 83 (two alternated pairs, 2026-11-22).
    """
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    sys.setswitchinterval(_SWITCH_SECONDS)


class PatientThread:
    """Does one piece of work after the other for an event loop. Unlike an executor, it lets the process end meanwhile.

    Args:
        name: of the thread.
        niceness: as of `be_nice`.
    """

    def __init__(self, name: str, niceness: int) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._niceness = niceness
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def do(self, work: Callable[[], _T]) -> _T:
        """Returns what the work returns. It is done even if nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        box: list[tuple[Any, BaseException | None]] = []  # emptied here, so that the thread keeps no result

        def tell() -> None:
            if not done.done():
                done.set_result(None)

        def run() -> None:
            try:
                box.append((work(), None))
            except BaseException as error:  # noqa: BLE001  # it is raised where the result is awaited
                box.append((None, error))
            _open.discard(run)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(tell)

        _open.add(run)
        self._work.put(run)
        await done
        result, error = box.pop()
        if error is not None:
            raise error
        return cast("_T", result)

    def _run(self) -> None:
        be_nice(self._niceness)
        while True:
            self._work.get()()


async def whole(work: Future[_T]) -> _T:
    """Returns what an executor's work returns. A task that is cancelled meanwhile stays until begun work has ended.

    So the task holds the memory of the work for as long as the work takes it.
    """
    ended, is_cancelled = asyncio.wrap_future(work), False
    while not ended.done():
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            if work.cancel():  # it has not begun
                raise
            is_cancelled = True
    if is_cancelled:
        ended.exception()  # else asyncio says that nobody has looked at it
        raise asyncio.CancelledError
    return ended.result()


def leave_if_busy(exit_code: int) -> None:
    """Ends the process at once if a patient thread still works: native code would crash while Python ends."""
    if _open:
        sys.stdout.flush()
        os._exit(exit_code)
