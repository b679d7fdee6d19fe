"""Whether ONNX Runtime uses the device at all, and how much of its memory is taken."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from server.models.choosing import can_use_cuda
from server.runtime.cuda_device import find_cuda_device
from server.runtime.providers import PROVIDERS, check_provider, library_fault

UNKNOWN_MIB = -1


def describe_device(device: str) -> str:
    """Returns the GPU's name, compute capability, driver and memory; "CPU" of a CPU.

    Raises:
        RuntimeError: there is no GPU, or not the package for it.
        SettingsError: the server would not start: two builds of ONNX Runtime, or a GPU that cannot be used.
    """
    if device == "cpu":
        return "CPU"
    if not can_use_cuda():  # which the server asks too
        raise RuntimeError("there is no NVIDIA driver, or onnxruntime-gpu is not installed")
    return str(find_cuda_device())


def used_mib(device: str) -> int:
    """Returns the GPU's memory that all processes have, 0 of a CPU; `UNKNOWN_MIB` where nobody says it.

    It is not asked of torch, whose question alone takes some hundred MiB.
    """
    if device == "cpu":
        return 0
    memory = find_cuda_device().memory
    if memory is None:
        return UNKNOWN_MIB
    total, free = memory
    return (total - free) >> 20


def add(device: str) -> list[float]:
    """Returns 1 + 1 twice, as ONNX Runtime adds it on the device.

    Raises:
        RuntimeError: it does so on another one.
        SettingsError: what the device needs does not load.
    """
    check_provider(device)
    pair = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", pair[:1], pair[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=[PROVIDERS[device]])
    found = session.get_providers()[0]
    if found != PROVIDERS[device]:
        raise RuntimeError(f"ONNX Runtime fell back to {found}: {library_fault()}")
    (result,) = session.run(None, {"x": np.ones(2, np.float32)})
    return [float(value) for value in result]
