import subprocess
import sys

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


def test_memory_that_a_tensor_leaves_serves_the_next_one() -> None:
    result = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)

    assert int(result.stdout) < 2**12  # pages; a tensor of 64 MiB has 2**14


def test_memory_that_the_c_library_keeps_can_be_given_back() -> None:
    result = subprocess.run([sys.executable, "-c", _FREEING_SCRIPT], capture_output=True, text=True, check=True)

    assert int(result.stdout) > 2**13  # pages, of those of 64 MiB
