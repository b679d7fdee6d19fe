"""What this machine and its processors say of themselves: cores, int8 dot products, a CUDA device."""

import ctypes
import math
import os
import re
from pathlib import Path

_DOT_PRODUCT_FLAGS = {"avx_vnni", "avx512_vnni", "amx_int8", "asimddp", "i8mm"}
_CPU_INFO = Path("/proc/cpuinfo")
_CGROUP_2_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_CGROUP_1 = Path("/sys/fs/cgroup/cpu")
_NVIDIA_CONTROL = Path("/dev/nvidiactl")


def has_int8_dot_product(cpu_info: Path = _CPU_INFO) -> bool:
    """Whether the processor says so (x86: AVX-VNNI, AVX-512 VNNI, AMX; Arm: dotprod, i8mm); False if unknown."""
    return bool(_DOT_PRODUCT_FLAGS & set(re.split(r"\s+", _read(cpu_info))))


def has_cuda_device() -> bool:
    """Whether an NVIDIA driver offers a device; whether ONNX Runtime can use it shows when the model is loaded."""
    return _NVIDIA_CONTROL.exists()


def usable_cores(cgroup_2_quota: Path = _CGROUP_2_QUOTA, cgroup_1: Path = _CGROUP_1) -> int:
    """Cores that this process may keep busy: its affinity, bounded by a container's quota; at least 1."""
    cores = len(os.sched_getaffinity(0))
    quota, _, period = _read(cgroup_2_quota).partition(" ")
    if not quota:
        quota, period = _read(cgroup_1 / "cpu.cfs_quota_us"), _read(cgroup_1 / "cpu.cfs_period_us")
    try:
        limit = float(quota) / float(period)
    except (ValueError, ZeroDivisionError):  # "max", or no cgroup
        return cores
    return max(1, min(cores, math.ceil(limit))) if limit > 0 else cores


def release_freed_memory() -> None:
    """Gives the system what was freed but is still the allocator's: after loading 10 MiB; only glibc can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
