"""What a failed call of ONNX Runtime means, read off its words: nearly all of its failures share a few classes."""

import errno
import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from server.network import DeviceLost, OutOfMemory

# Of these numbers NVIDIA says that the process must be ended and launched anew (CUDA runtime API, cudaError), and
# uncorrectable errors of memory (214) and links (220).
_LOST = re.compile(
    r"CUDA (failure|error) \(?(214|220|226|700|702|709|710|714|715|716|717|718|719)\b"
    r"|illegal memory access|device-side assert|unspecified launch failure|uncorrectable|\bXid\b"
)
_OUT_OF_MEMORY = re.compile(
    r"CUDA failure 2\b|out of memory|Failed to allocate memory|is smaller than requested bytes|bad_alloc|_ALLOC_FAILED"
)
_NO_CODE = re.compile(r"CUDA failure 209\b|no kernel image")
_OF_DEVICE = re.compile(r"\b(CUDA|CUBLAS|CUDNN|CURAND) failure (\d+): ([^;\n]*)")

_P = ParamSpec("_P")
_T = TypeVar("_T")


def advice_on_device(words: str) -> str:
    """Returns what is wrong with a device, by the words of a failure while a model is loaded, and what to do about it.

    Empty if they are of something else.
    """
    if _OUT_OF_MEMORY.search(words):
        return "its memory does not suffice: lower --max-rows or --max-encode-tokens, or raise --device-memory-mib"
    if _NO_CODE.search(words):
        return "this onnxruntime-gpu has no code for the GPU's compute capability: install a release that has"
    if found := _OF_DEVICE.search(words):
        return f"{found[0].strip()}: nvidia-smi and the host's kernel log say whether the GPU is well"
    return ""


def telling_failures_apart(call: Callable[_P, _T]) -> Callable[_P, _T]:
    """Makes a method of a runner or decoder raise `OutOfMemory` and `DeviceLost` where that is what has happened."""

    @wraps(call)
    def run(*arguments: _P.args, **options: _P.kwargs) -> _T:
        try:
            return call(*arguments, **options)
        except Exception as error:
            words = str(error)
            if _LOST.search(words):
                raise DeviceLost(words) from error
            has_no_memory = isinstance(error, MemoryError) or getattr(error, "errno", 0) == errno.ENOMEM
            if has_no_memory or _OUT_OF_MEMORY.search(words):
                raise OutOfMemory(words) from error
            raise

    return run
