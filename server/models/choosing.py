"""Chooses ONNX Runtime, device and variant: as the operator asks, else the best that machine and bundle have."""

import contextlib
import importlib.metadata
from pathlib import Path

from server.bundle.variants import VARIANTS
from server.errors import SettingsError
from server.runtime.cuda_device import has_cuda_device
from server.settings.settings import AUTO, Settings

_CPU_PACKAGE, _GPU_PACKAGE = "onnxruntime", "onnxruntime-gpu"
_ON_CPU = ["cpu-int8", "cpu-fp32"]


def can_use_cuda() -> bool:
    """Returns whether there are a CUDA device and the package for it. Other obstacles show when it is used.

    Raises:
        SettingsError: no ONNX Runtime is installed, or two are.
    """
    return _GPU_PACKAGE in installed_packages() and has_cuda_device()


def choose_variant(settings: Settings) -> str:
    """Returns the variant that the settings name. For `auto` it is the fastest that machine and bundle have.

    Args:
        settings: `variant`, `device` and `bundle` are read.

    Raises:
        SettingsError: no ONNX Runtime is installed, or two are, whatever the settings name.
    """
    has_cuda = can_use_cuda()
    if settings.variant != AUTO:
        return settings.variant
    if settings.device == "cuda" or (settings.device == AUTO and has_cuda):
        preferred = ["cuda-fp16"] if settings.device == "cuda" else ["cuda-fp16", *_ON_CPU]
    else:
        preferred = _ON_CPU
    found = [variant for variant in preferred if _is_there(settings.bundle / variant)]
    return (found or preferred)[0]


def _is_there(directory: Path) -> bool:
    try:
        return directory.is_dir()
    except OSError:  # the bundle cannot be read, and opening it raises the error that says so
        return False


def idle_gpu(settings: Settings, variant: str) -> str:
    """Returns why a server that is installed for a GPU chose to serve on a CPU; empty if it did not."""
    may_choose = settings.variant == settings.device == AUTO
    if not may_choose or VARIANTS[variant].is_on_device or _GPU_PACKAGE not in installed_packages():
        return ""
    reason = "the bundle has no variant cuda-fp16" if can_use_cuda() else "no NVIDIA driver offers a device"
    return f"{_GPU_PACKAGE} is installed, but {variant} is served on the CPU: {reason}; --device says what it is to be"


def can_run(variant: str) -> bool:
    """Returns whether this machine has the device of a variant."""
    return not VARIANTS[variant].is_on_device or can_use_cuda()


def installed_packages() -> set[str]:
    """Returns the distribution of ONNX Runtime that is installed. Raises SettingsError if it is not exactly one."""
    found = {}
    for name in (_CPU_PACKAGE, _GPU_PACKAGE):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = str(importlib.metadata.distribution(name).locate_file(""))
    check_packages(found)
    return set(found)


def check_packages(found: dict[str, str]) -> None:
    """Raises SettingsError, with what to install, unless exactly one distribution of ONNX Runtime is installed.

    Args:
        found: the folder of each distribution.
    """
    if len(found) > 1:
        places = " and ".join(f"{name} (in {folder})" for name, folder in sorted(found.items()))
        message = f"{places} are both installed and overwrite each other: uninstall both, then"
        raise SettingsError([f"{message} install 'babelserve[cpu]' or 'babelserve[gpu]'"])
    if not found:
        raise SettingsError(["no ONNX Runtime is installed: install 'babelserve[cpu]' or 'babelserve[gpu]'"])
