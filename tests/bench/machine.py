"""Where the numbers come from: printed with every table, since a number without its machine says nothing."""

import importlib.metadata
import os
import platform
from pathlib import Path

_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "ctranslate2", "numpy", "grpcio", "torch")
_FLAGS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "amx_int8")


def describe_machine() -> dict[str, object]:
    """Returns processor, usable cores, memory, load and system."""
    processor = _fields(Path("/proc/cpuinfo"))
    memory_kib = int(_fields(Path("/proc/meminfo"))["MemTotal"].split()[0])
    flags = set(processor.get("flags", "").split())
    return {
        "processor": processor.get("model name", platform.processor()),
        "flags": [flag for flag in _FLAGS if flag in flags],
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_kib / 2**20, 1),
        "load_1_minute": round(os.getloadavg()[0], 2),  # of others, at the start: numbers from a busy machine mislead
        "system": platform.platform(),
    }


def versions() -> dict[str, str]:
    """Returns those of Python and of the packages that are installed."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # ctranslate2 is not needed to compare two checkouts
    return found


def _fields(path: Path) -> dict[str, str]:
    """Returns the first value of each `name : value` line."""
    fields: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return fields
