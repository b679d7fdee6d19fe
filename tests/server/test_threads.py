"""The priorities of threads."""

import asyncio
import os
import subprocess
import sys
import threading
import weakref

import pytest

from server.threads import PatientThread, be_nice


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
