"""What the device says of itself, and whether ONNX Runtime uses it at all."""

from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from server.models.choosing import can_use_cuda
from server.runtime.sessions import PROVIDERS


def describe_device(device: str) -> dict[str, Any]:
    """Returns name, driver, compute capability and memory of the first GPU; nothing of a CPU."""
    if device == "cpu":
        return {}
    nvml, handle = _open()
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return {
        "name": nvml.nvmlDeviceGetName(handle),
        "driver": nvml.nvmlSystemGetDriverVersion(),
        "compute_capability": ".".join(map(str, nvml.nvmlDeviceGetCudaComputeCapability(handle))),
        "memory_mib": memory.total >> 20,
        "used_mib": memory.used >> 20,
    }


def used_mib(device: str) -> int:
    """Returns the memory of the first GPU that all processes have; 0 of a CPU.

    By NVML and not by torch, whose question alone would take some hundred MiB for a context.
    """
    if device == "cpu":
        return 0
    nvml, handle = _open()
    return int(nvml.nvmlDeviceGetMemoryInfo(handle).used) >> 20


def add(device: str) -> list[float]:
    """Returns 1 + 1 twice, as ONNX Runtime adds it on the device.

    Raises:
        RuntimeError: it does so on another one.
        SettingsError: there is no ONNX Runtime, or there are two.
    """
    if device == "cuda":
        if not can_use_cuda():  # which the server asks too
            raise RuntimeError("the server would take no GPU: no driver, or onnxruntime-gpu is not installed")
        onnxruntime.preload_dlls()
    pair = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", pair[:1], pair[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=[PROVIDERS[device]])
    found = session.get_providers()[0]
    if found != PROVIDERS[device]:
        raise RuntimeError(f"ONNX Runtime fell back to {found}")
    (result,) = session.run(None, {"x": np.ones(2, np.float32)})
    return [float(value) for value in result]


def _open() -> tuple[Any, Any]:
    import pynvml  # noqa: PLC0415  # nvidia-ml-py, which only a machine with a GPU needs

    pynvml.nvmlInit()
    return pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
