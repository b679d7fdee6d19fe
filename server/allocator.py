"""Controls how much freed memory glibc's allocator keeps. With another C library nothing here has an effect."""

import contextlib
import ctypes
import gc
import threading
from collections.abc import Iterator

_LIBC = ctypes.CDLL(None)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h: free end of the heap, size of a block with its own pages
_EAGER = (64 << 10, 128 << 10)  # bytes: for mmap, and for trim
_LAZY = (32 << 20, 64 << 20)  # the largest values to which glibc raises them by itself
_lock = threading.Lock()
_num_eager = 0  # uses of `memory_returned` that have not ended
_collecting = threading.Lock()


@contextlib.contextmanager
def memory_returned() -> Iterator[None]:
    """Makes glibc return large blocks to the system once they are freed, if a thread took them in this block.

    A model is a few such blocks, which stay for long. The tensors of steps are as large, but come again and again, and
    from them glibc learns to keep what is freed: after models had been exchanged, the server held much more memory than
    the models needed. At the end the thresholds are set to what glibc would have learned by then.
    """
    global _num_eager  # noqa: PLW0603  # the thresholds are of the process, too
    with _lock:
        _num_eager += 1
        _set_thresholds(*_EAGER)
    try:
        yield
    finally:
        with _lock:
            _num_eager -= 1
            if not _num_eager:
                _set_thresholds(*_LAZY)


def collect_garbage() -> None:
    """Frees what a model that is gone has held: it is in reference cycles, and the collector runs seldom.

    Threads take turns, because `gc.collect` does nothing while another thread collects. A model that had left memory in
    the meantime would be kept.
    """
    with _collecting:
        gc.collect()
    release_freed_memory()


def release_freed_memory() -> None:
    """Returns to the system what was freed but is still held by the allocator."""
    trim = getattr(_LIBC, "malloc_trim", None)
    if trim is not None:
        trim(0)


def _set_thresholds(mmap_bytes: int, trim_bytes: int) -> None:
    mallopt = getattr(_LIBC, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, mmap_bytes)
        mallopt(_M_TRIM_THRESHOLD, trim_bytes)
