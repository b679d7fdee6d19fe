"""Whether a processor multiplies faster in bfloat16."""

import functools
import time

import torch

_ROWS, _WIDTH, _COLUMNS = 512, 256, 1024  # of a small model's layers
_NUM_TRIES = 20  # others may run meanwhile
_WORTH_IT = 1.25  # times as fast, since autocast converts what it multiplies


@functools.cache
def is_bfloat16_faster() -> bool:
    """Says whether this machine's processor gains by bfloat16 autocast; takes some milliseconds, once.

    Measured, not looked up: of two processors that both have instructions for it, one took 1.7 times as long for a
    product in bfloat16 as in float32. A neighbour may sway it: `training.bf16 = false` decides.
    """
    return _seconds(torch.float32) > _WORTH_IT * _seconds(torch.bfloat16)


def _seconds(dtype: torch.dtype) -> float:
    """Of a product, the fastest of some."""
    left, right = torch.ones(_ROWS, _WIDTH, dtype=dtype), torch.ones(_WIDTH, _COLUMNS, dtype=dtype)
    fastest = float("inf")
    for _ in range(_NUM_TRIES + 1):  # the first warms it up, and is the slowest
        started = time.perf_counter()
        torch.mm(left, right)
        fastest = min(fastest, time.perf_counter() - started)
    return fastest
