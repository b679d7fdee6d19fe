"""The server with a kernel in its own CUDA context that fails at SIGUSR1: `python -m tests.gpu.trapping_server DEVICE`.

What follows the device are the server's flags. The server's code has no hook for this: torch shares the context of the
process with ONNX Runtime. On a CPU the signal does nothing.
"""

import signal
import sys

import torch

from server import __main__
from tests.gpu.neighbour import trap


def main(device: str, flags: list[str]) -> int:
    """Serves as `babelserve` does; returns its exit code."""
    if device == "cuda":
        torch.zeros(1, device=device)  # the context is there before the signal
    signal.signal(signal.SIGUSR1, lambda *_: print(f"trapped: {trap(device)}", file=sys.stderr, flush=True))
    return __main__.main(flags)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
