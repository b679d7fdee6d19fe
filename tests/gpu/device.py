"""What the device says of itself, and whether ONNX Runtime uses it at all."""

import subprocess

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from server.models.choosing import can_use_cuda
from server.runtime.providers import PROVIDERS

UNKNOWN_MIB = -1
_QUERY = ("name", "driver_version", "compute_cap", "memory.total", "memory.used")  # of nvidia-smi; memory in MiB


def describe_device(device: str) -> dict[str, str]:
    """Returns name, driver, compute capability and memory in MiB of the first GPU; nothing of a CPU."""
    return dict(zip(_QUERY, _ask(), strict=False)) if device == "cuda" else {}


def used_mib(device: str) -> int:
    """Returns the memory of the first GPU that all processes have, 0 of a CPU; `UNKNOWN_MIB` where nobody says it.

    By nvidia-smi, which is wherever the driver is, and not by torch, whose question alone takes some hundred MiB.
    """
    if device == "cpu":
        return 0
    try:
        return int(_ask()[-1])
    except (IndexError, ValueError):  # of a MIG instance it says "[N/A]"
        return UNKNOWN_MIB


def add(device: str) -> list[float]:
    """Returns 1 + 1 twice, as ONNX Runtime adds it on the device.

    Raises:
        RuntimeError: it does so on another one.
        SettingsError: there is no ONNX Runtime, or there are two, and the server would not start.
    """
    if device == "cuda":
        if not can_use_cuda():  # which the server asks too
            raise RuntimeError("there is no NVIDIA driver, or onnxruntime-gpu is not installed")
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


def _ask() -> list[str]:
    command = ["nvidia-smi", "--id=0", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, text=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [word.strip() for word in answer.splitlines()[0].split(",")] if answer.strip() else []
