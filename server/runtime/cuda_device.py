"""The GPU that this process computes on: found, judged and described without a CUDA context.

The driver's own library, libcuda, says which it is: CUDA's first device, as a container and CUDA_VISIBLE_DEVICES leave
it, a whole GPU or a MIG instance of one. NVIDIA's management library (package nvidia-ml-py) says how much of its memory
is free. Neither makes a context, and neither minds a stream that is being captured, so both may be asked at any time.
"""

import ctypes
import functools
import logging
import os
import uuid
from dataclasses import dataclass, field
from typing import Any

from server.errors import SettingsError

logger = logging.getLogger(__name__)

_DRIVER = "libcuda.so.1"
_LEAST_CUDA = 13_000  # of the driver, as cuDriverGetVersion counts: 1000 * major + 10 * minor
_LEAST_CAPABILITY = (7, 5)  # CUDA 13 has dropped what is older
_NAME_BYTES, _UUID_BYTES = 256, 16
_MAJOR, _MINOR = 75, 76  # of CUdevice_attribute: the compute capability
_NO_DEVICE = 100  # of CUresult, as these
_ADVICE = {
    _NO_DEVICE: "start a container with --gpus all, or give its pod nvidia.com/gpu; CUDA_VISIBLE_DEVICES is {visible}",
    101: "CUDA_VISIBLE_DEVICES is {visible}, which names none that is there",
    802: "the NVSwitch fabric is not up: start nvidia-fabricmanager of the driver's own version on the host",
    803: "kernel module and driver library have different versions: restart the host, or its containers",
    804: "the CUDA compatibility package does not know this GPU: remove it, and install a newer driver",
    999: "look for NVRM and Xid in the host's kernel log",
}
_ANY_ADVICE = "nvidia-smi on the host says whether the driver works"


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaDevice:
    """A GPU, or a MIG instance of one.

    Attributes:
        name: as NVIDIA calls it.
        uuid: the same whatever CUDA_VISIBLE_DEVICES hides.
        capability: its compute capability, major and minor.
        cuda: the newest CUDA that the driver knows, major and minor.
        total_bytes: its memory.
        driver: the driver's version; empty if the management library does not say.
    """

    name: str
    uuid: uuid.UUID
    capability: tuple[int, int]
    cuda: tuple[int, int]
    total_bytes: int
    driver: str = ""
    _nvml: tuple[Any, Any] | None = field(default=None, repr=False, compare=False)  # the module, and its handle

    @property
    def memory(self) -> tuple[int, int] | None:
        """Bytes in all and bytes that are free; None if the management library does not say."""
        if self._nvml is None:
            return None
        nvml, handle = self._nvml
        try:
            found = nvml.nvmlDeviceGetMemoryInfo(handle)
        except nvml.NVMLError:  # some have no memory of their own; one that is lost has none to speak of
            return None
        return int(found.total), int(found.free)

    def __str__(self) -> str:
        """Name, compute capability, driver and memory, in words for the operator."""
        total, free = self.memory or (self.total_bytes, None)
        memory = f"{total >> 20} MiB" if free is None else f"{free >> 20} of {total >> 20} MiB free"
        driver = f"driver {self.driver or 'unknown'} for CUDA {_dotted(self.cuda)}"
        return f"{self.name} (compute capability {_dotted(self.capability)}, {driver}, {memory})"


def has_cuda_device() -> bool:
    """Whether an NVIDIA driver offers a device, or fails to: what is wrong with one shows when it is to be used."""
    driver = _load_driver()
    return driver is not None and driver.cuInit(0) != _NO_DEVICE


@functools.cache
def find_cuda_device() -> CudaDevice:
    """Returns CUDA's first device, the one that ONNX Runtime takes.

    Raises:
        SettingsError: there is none that the CUDA provider can use; says what to do.
    """
    driver = _load_driver()
    if driver is None:
        advice = "install one of the 580 series or newer; " + _advice(_NO_DEVICE)
        raise _fault(f"there is no NVIDIA driver, {_DRIVER}: {advice}")
    _check(driver, driver.cuInit(0))
    version, ordinal = ctypes.c_int(), ctypes.c_int()
    _check(driver, driver.cuDriverGetVersion(ctypes.byref(version)))
    cuda = version.value // 1000, version.value % 1000 // 10
    if version.value < _LEAST_CUDA:
        advice = "install a driver of the 580 series or newer"
        raise _fault(f"the driver knows CUDA up to {_dotted(cuda)}, ONNX Runtime needs 13.0: {advice}")
    _check(driver, driver.cuDeviceGet(ctypes.byref(ordinal), 0))
    device = _describe(driver, ordinal, cuda)
    if device.capability < _LEAST_CAPABILITY:
        least = f"less than {_dotted(_LEAST_CAPABILITY)}, the least of CUDA 13: take a Turing or newer, or --device cpu"
        raise _fault(f"{device.name} has compute capability {_dotted(device.capability)}, {least}")
    return device


def _load_driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(_DRIVER)
    except OSError:
        return None


def _describe(driver: ctypes.CDLL, ordinal: ctypes.c_int, cuda: tuple[int, int]) -> CudaDevice:
    name, identity = ctypes.create_string_buffer(_NAME_BYTES), (ctypes.c_ubyte * _UUID_BYTES)()
    major, minor, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    _check(driver, driver.cuDeviceGetName(name, _NAME_BYTES, ordinal))
    _check(driver, driver.cuDeviceGetUuid_v2(ctypes.byref(identity), ordinal))  # of a MIG instance its own
    _check(driver, driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, ordinal))
    _check(driver, driver.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, ordinal))
    _check(driver, driver.cuDeviceTotalMem_v2(ctypes.byref(total), ordinal))
    own = uuid.UUID(bytes=bytes(identity))
    nvml = _open_nvml(own)
    return CudaDevice(
        name=name.value.decode(errors="replace"),
        uuid=own,
        capability=(major.value, minor.value),
        cuda=cuda,
        total_bytes=total.value,
        driver=_driver_version(nvml),
        _nvml=nvml,
    )


def _open_nvml(device: uuid.UUID) -> tuple[Any, Any] | None:
    """Returns the management library and its handle of a device; None, and a warning, if it does not know it."""
    try:
        import pynvml  # noqa: PLC0415  # of the extra `gpu`
    except ImportError:
        logger.warning("free device memory is unknown: nvidia-ml-py is not installed, babelserve[gpu] has it")
        return None
    try:
        pynvml.nvmlInit()
        try:
            return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{device}")
        except pynvml.NVMLError:  # it is no whole GPU
            return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"MIG-{device}")
    except pynvml.NVMLError as error:
        advice = "a container needs the driver capability utility beside compute"
        logger.warning("free device memory is unknown: %s: %s", error, advice)
        return None


def _driver_version(nvml: tuple[Any, Any] | None) -> str:
    if nvml is None:
        return ""
    module, _ = nvml
    try:
        return str(module.nvmlSystemGetDriverVersion())
    except module.NVMLError:
        return ""


def _check(driver: ctypes.CDLL, result: int) -> None:
    if result:
        name = ctypes.c_char_p()
        driver.cuGetErrorName(result, ctypes.byref(name))
        raise _fault(f"the driver says {(name.value or b'error').decode()} ({result}): {_advice(result)}")


def _advice(result: int) -> str:
    visible = repr(os.environ["CUDA_VISIBLE_DEVICES"]) if "CUDA_VISIBLE_DEVICES" in os.environ else "not set"
    return _ADVICE.get(result, _ANY_ADVICE).format(visible=visible)


def _fault(words: str) -> SettingsError:
    return SettingsError([f"device cuda: {words}"])


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
