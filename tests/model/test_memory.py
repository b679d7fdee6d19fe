import subprocess
import sys

import torch

from model.memory import return_freed_memory

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


def test_memory_that_a_tensor_leaves_serves_the_next_one() -> None:
    result = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)

    assert int(result.stdout) < 2**12  # pages; a tensor of 64 MiB has 2**14


def test_freed_memory_can_be_given_back_any_time() -> None:
    kept = torch.arange(1000.0)

    return_freed_memory()

    assert torch.equal(kept, torch.arange(1000.0))
