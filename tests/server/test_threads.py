"""The priorities of threads."""

import os
import threading

from server.threads import be_nice


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
