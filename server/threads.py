"""Priorities of threads. Where cores are scarce, whoever answers calls, if only to refuse them, goes first."""

import os
import threading

LANE_NICENESS = 5  # of lanes, and of who loads a model
SPLITTER_NICENESS = 10  # of who splits long texts, that others wait for less


def be_nice(niceness: int) -> None:
    """Lowers the priority of the calling thread, unless it is lower already; on Linux each thread has its own.

    Args:
        niceness: 0 to 19, as of `setpriority(2)`: each step takes a fifth of what the thread gets of a busy core.
    """
    thread = threading.get_native_id()
    if os.getpriority(os.PRIO_PROCESS, thread) < niceness:  # to raise it is a privilege
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
