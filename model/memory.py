"""The memory that there is, and settings of glibc's malloc by which training reuses that of tensors."""

import contextlib
import ctypes
import gc
import os
from collections.abc import Iterator

import torch

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # of glibc's malloc.h
_LARGEST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Lets glibc keep what tensors leave for the next ones; says whether the C library is one that can.

    By default each large tensor is mapped anew and cleared by the kernel, page by page: on two cores of a virtual
    machine an update took three times as long.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    options = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, _LARGEST), (_M_TOP_PAD, 2**26))
    return all(bool(mallopt(option, value)) for option, value in options)


def memory_bytes() -> int:
    """Returns how many bytes of memory the GPU has, or without one the machine."""
    if torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(torch.device("cuda")).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@contextlib.contextmanager
def known_memory_errors() -> Iterator[None]:
    """Raises MemoryError, with what helps, where PyTorch has found no memory: on a processor it says RuntimeError."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
            raise
        raise MemoryError("the memory is full: lower batch_tokens or max_tokens in [training]") from error


@contextlib.contextmanager
def passing_over_old_objects() -> Iterator[None]:
    """Has the collector of cycles look at new objects only: it would take a tenth of a second for those of PyTorch.

    It does nothing where somebody has frozen objects before.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def return_freed_memory() -> None:
    """Gives back what the C library keeps of freed memory, where it can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
