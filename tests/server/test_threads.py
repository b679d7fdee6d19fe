"""The priorities of threads."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from server.threads import PatientThread, be_nice, tune_interpreter, whole


def test_a_thread_lowers_its_own_priority_alone() -> None:
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    seen: list[int] = []

    def run() -> None:
        be_nice(own + 3)
        be_nice(own + 1)
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [own + 3]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


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
