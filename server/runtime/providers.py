"""ONNX Runtime's execution providers: which a device takes, and what keeps it from loading."""

import contextlib
import ctypes
import io
import os
from pathlib import Path

import onnxruntime

from server.errors import SettingsError

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
# Memory is taken as it is asked for. ONNX Runtime's own way is to double what it has, which took 262 MiB for caches of
# 100 (2026-11-26, counted by tests.acceptance.cuda_memory).
ARENA = {"arena_extend_strategy": "kSameAsRequested"}
_CUDA_LIBRARY = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_cuda.so"
_CUDNN = "libcudnn.so.9"  # ONNX Runtime loads it when a node first needs it, and a decoder step does
_INSTALL = "install babelserve[gpu] into a virtual environment of its own, it brings CUDA 13 and cuDNN 9"


def check_provider(device: str) -> None:
    """Loads what a device's execution provider needs. Raises SettingsError if it is not there."""
    provider = PROVIDERS[device]
    if provider not in onnxruntime.get_available_providers():
        raise SettingsError([f"device {device}: this ONNX Runtime has no {provider}: install babelserve[gpu]"])
    if device == "cuda":
        with contextlib.redirect_stdout(io.StringIO()):  # it prints what is missing, which is told below
            onnxruntime.preload_dlls()
        onnxruntime.set_default_logger_severity(3)  # each ScatterND warns of equal indices, which there never are
        _take_memory_exactly()
        try:
            ctypes.CDLL(_CUDNN)
        except OSError as error:
            raise SettingsError([f"device cuda: cuDNN does not load: {error}: {_INSTALL}"]) from error


def _take_memory_exactly() -> None:
    """Has tensors that Python puts on the device take what they need: they have an arena that no option reaches.

    The function is deprecated for sessions, which have an option. Without it caches take up to twice their size.
    """
    known = onnxruntime.capi.onnxruntime_pybind11_state
    if hasattr(known, "set_arena_extend_strategy"):
        known.set_arena_extend_strategy(known.ArenaExtendStrategy.kSameAsRequested)


def library_fault() -> str:
    """Says what the CUDA provider lacks: ONNX Runtime tells its log alone."""
    try:
        ctypes.CDLL(str(_CUDA_LIBRARY), os.RTLD_LAZY)
    except OSError as error:
        return f"{error}: {_INSTALL}"
    return f"its CUDA libraries did not load: {_INSTALL}"
