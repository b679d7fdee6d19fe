"""The priorities of threads."""

import asyncio
import ctypes
import gc
import os
import platform
import re
import struct
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from server.threads import PatientThread, be_nice, be_prompt, tune_interpreter, whole


def test_a_thread_lowers_its_own_priority_alone() -> None:
    own, policy = os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), os.sched_getscheduler(0)
    seen: list[int] = []

    def run() -> None:
        be_nice(own + 3)
        be_nice(own + 1)
        seen.extend((os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), os.sched_getscheduler(0)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [own + 3, os.SCHED_BATCH]
    assert (os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), os.sched_getscheduler(0)) == (own, policy)


def slice_nanoseconds() -> int:
    """The slice of the calling thread, as of `sched_getattr(2)`."""
    layout = struct.Struct("=IIQiIQQQ")
    attributes = ctypes.create_string_buffer(layout.size)
    number = {"x86_64": 315, "aarch64": 275}[platform.machine()]
    assert ctypes.CDLL(None).syscall(number, 0, attributes, layout.size, 0) == 0
    return int(layout.unpack(attributes)[5])


def has_slices() -> bool:
    """Whether the kernel gives a thread the slice that it asks for."""
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    is_recent = release is not None and (int(release[1]), int(release[2])) >= (6, 12)
    return is_recent and platform.machine() in ("x86_64", "aarch64")


@pytest.mark.skipif(not has_slices(), reason="needs Linux 6.12 on x86-64 or ARM64")
def test_a_prompt_thread_has_the_shortest_slices_and_those_that_it_starts_have_the_usual_ones() -> None:
    seen: list[int] = []

    def run() -> None:
        usual = slice_nanoseconds()
        be_prompt()
        seen.append(slice_nanoseconds())
        other = threading.Thread(target=lambda: seen.append(slice_nanoseconds() - usual))
        other.start()
        other.join()
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [100_000, 0, os.getpriority(os.PRIO_PROCESS, 0)]


async def test_a_patient_thread_does_one_piece_of_work_after_the_other_and_keeps_no_result() -> None:
    thread, order = PatientThread("patient", 0), list[int]()

    await asyncio.gather(thread.do(lambda: order.append(1)), thread.do(lambda: order.append(2)))
    kept = weakref.ref(await thread.do(threading.Event))

    assert order == [1, 2]
    assert kept() is None
    with pytest.raises(ZeroDivisionError):
        await thread.do(lambda: 1 // 0)


async def test_a_cancelled_task_stays_until_work_that_has_begun_has_ended() -> None:
    began, goes_on, unbegun = threading.Event(), threading.Event(), list[int]()

    def work() -> None:
        began.set()
        goes_on.wait(30)
        raise ZeroDivisionError

    with ThreadPoolExecutor(1) as executor:
        first = asyncio.create_task(whole(executor.submit(work)))
        second = asyncio.create_task(whole(executor.submit(unbegun.append, 1)))
        assert await asyncio.to_thread(began.wait, 30)
        second.cancel()
        for _ in range(2):  # impatient callers cancel again
            first.cancel()
            await asyncio.wait([first], timeout=0.05)
        assert (first.done(), second.done()) == (False, True)
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        with pytest.raises(ZeroDivisionError):
            await whole(executor.submit(lambda: 1 // 0))
        assert await whole(executor.submit(int)) == 0
    assert not unbegun


def test_the_end_of_the_process_waits_for_no_patient_thread() -> None:
    code = (
        "import asyncio, time, server.threads as t\n"
        "async def main():\n"
        "    asyncio.create_task(t.PatientThread('hangs', 0).do(lambda: time.sleep(1000)))\n"
        "    await asyncio.sleep(0.1)\n"
        "asyncio.run(main())\n"
        "t.leave_if_busy(7)\n"
    )

    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 7


def test_what_is_loaded_is_left_alone_by_the_collector_and_threads_give_way_sooner() -> None:
    threshold, seconds = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(700)
    sys.setswitchinterval(0.005)
    try:
        tune_interpreter()

        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > 700
        assert sys.getswitchinterval() < 0.005
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
        sys.setswitchinterval(seconds)
