"""What becomes of freed memory, by what the kernel says of this process."""

import multiprocessing
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from server.allocator import collect_garbage, memory_returned, release_freed_memory

MIB = 1 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


def kept_of_large_blocks() -> int:
    """What stays of 40 blocks of a MiB that have been freed."""
    release_freed_memory()
    before = resident_bytes()
    blocks = [np.ones(MIB // 8) for _ in range(40)]
    assert resident_bytes() - before > 30 * MIB
    del blocks
    return resident_bytes() - before


def test_freed_memory_is_released() -> None:
    arrays = [np.ones(256) for _ in range(20_000)]  # 2 KiB each, 40 MiB
    last = np.ones(256)  # keeps the end of the heap in use
    del arrays
    before = resident_bytes()

    release_freed_memory()

    assert last.all()
    assert before - resident_bytes() > 20 * MIB


class InCycle:
    """Is freed by the collector alone. It calls `ends` meanwhile."""

    def __init__(self, ends: Callable[[], object]) -> None:
        self.itself = self
        self.ends = ends

    def __del__(self) -> None:
        self.ends()


def test_garbage_is_collected_even_if_another_thread_collects() -> None:
    is_collecting, may_end = threading.Event(), threading.Event()
    threads = [threading.Thread(target=collect_garbage) for _ in range(2)]

    def hold() -> None:
        is_collecting.set()
        may_end.wait(10)

    InCycle(hold)
    threads[0].start()
    assert is_collecting.wait(10)
    late = weakref.ref(InCycle(lambda: None))
    threads[1].start()
    threads[1].join(0.1)  # it waits for the first; if it did not, it would be over
    may_end.set()
    for thread in threads:
        thread.join()

    assert late() is None


def kept_and_kept_later() -> tuple[int, int]:
    with memory_returned():
        with memory_returned():
            pass
        kept = kept_of_large_blocks()
    return kept, kept_of_large_blocks()


def test_large_blocks_are_returned_until_nobody_wants_that_any_more() -> None:
    # In a process whose heap has no hole that they fit in.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        kept, kept_later = processes.submit(kept_and_kept_later).result()

    assert kept < 4 * MIB
    assert kept_later > 20 * MIB
