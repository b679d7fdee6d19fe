"""Another process on the same GPU: `python -m tests.gpu.neighbour DEVICE WHAT`, as the third command starts it.

`hold MIB` takes memory until so much is left, says "holding", and keeps it until its standard input ends. `trap` runs
a kernel that fails, which ends its own CUDA context. On a CPU both only say what they would do.
"""

import contextlib
import sys

import torch

_CHUNKS_MIB = (1024, 64, 2)


def hold(device: str, left_mib: int) -> int:
    """Holds all but so much memory; returns the exit status."""
    held = []
    for size in _CHUNKS_MIB if device == "cuda" else ():
        with contextlib.suppress(torch.OutOfMemoryError):  # others take some too
            while torch.cuda.mem_get_info()[0] >> 20 >= left_mib + size:
                held.append(torch.empty(size << 20, dtype=torch.uint8, device=device))
    print("holding", flush=True)
    sys.stdin.read()
    return 0


def trap(device: str) -> str:
    """Runs a kernel that reads beyond a tensor's end; returns the error's first line, empty if there was none.

    From then on every call of this process fails on that device.
    """
    if device == "cpu":
        return ""
    tensor = torch.zeros(1, device=device)
    try:
        tensor[torch.tensor([7], device=device)].sum()
        torch.cuda.synchronize()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""


def main(device: str, what: str, *more: str) -> int:
    """Returns the exit status."""
    if what == "hold":
        return hold(device, int(more[0]))
    print(trap(device), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
