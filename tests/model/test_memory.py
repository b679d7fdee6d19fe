import subprocess
import sys

import pytest
import torch

from model.memory import known_memory_errors, memory_bytes

_SCRIPT = """
import resource, torch
from model.memory import keep_freed_memory
assert keep_freed_memory()
for _ in range(30):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    x = torch.ones(2**24)
    del x
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
_FREEING_SCRIPT = """
import torch
from pathlib import Path
from model.memory import return_freed_memory
blocks = [torch.ones(2**14) for _ in range(1024)]
last = blocks[-1]  # above the others in the heap, which cannot shrink by itself
del blocks
before = Path("/proc/self/statm").read_text().split()[1]
return_freed_memory()
print(int(before) - int(Path("/proc/self/statm").read_text().split()[1]))
"""

_CYCLES_SCRIPT = """
import gc, weakref
from model.memory import passing_over_old_objects
class Cycle:
    def __init__(self):
        self.itself = self
old = Cycle()
freed = weakref.ref(old)
with passing_over_old_objects():
    new = weakref.ref(Cycle())
    del old
    gc.collect()
    print(freed() is None, new() is None)
gc.collect()
print(freed() is None)
print(gc.get_freeze_count())
gc.freeze()
with passing_over_old_objects():
    pass
print(gc.get_freeze_count() > 0)
"""


def test_memory_that_a_tensor_leaves_serves_the_next_one() -> None:
    result = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)

    assert int(result.stdout) < 2**12  # pages; a tensor of 64 MiB has 2**14


def test_memory_that_the_c_library_keeps_can_be_given_back() -> None:
    result = subprocess.run([sys.executable, "-c", _FREEING_SCRIPT], capture_output=True, text=True, check=True)

    assert int(result.stdout) > 2**13  # pages, of those of 64 MiB


def test_the_collector_passes_over_old_objects_and_then_looks_at_all_again() -> None:
    result = subprocess.run([sys.executable, "-c", _CYCLES_SCRIPT], capture_output=True, text=True, check=True)

    assert result.stdout == "False True\nTrue\n0\nTrue\n"


def test_a_full_memory_is_told_with_what_helps() -> None:
    with pytest.raises(MemoryError, match="the memory is full: lower batch_tokens"), known_memory_errors():
        torch.empty(1 << 50)


def test_another_fault_of_pytorch_stays_as_it_is() -> None:
    with pytest.raises(RuntimeError, match="size"), known_memory_errors():
        torch.zeros(2) + torch.zeros(3)


def test_the_memory_is_that_of_the_machine() -> None:
    assert 1 << 28 < memory_bytes() < 1 << 50
