"""What is said of an execution provider that does not load; with the real onnxruntime-gpu where that is installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest

from server.errors import SettingsError
from server.runtime.providers import check_provider
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.acceptance.stub_driver import build_stub_driver, environment

is_gpu_build = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
needs_gpu_build = pytest.mark.skipif(not is_gpu_build, reason="needs onnxruntime-gpu")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
OPEN = """
import sys
from pathlib import Path
from server.bundle.bundle import open_bundle
from server.errors import SettingsError
from server.runtime.runner import open_runner
if "no libraries" in sys.argv:
    import onnxruntime
    onnxruntime.preload_dlls = lambda: None
try:
    open_runner(open_bundle(Path(sys.argv[1]), "cuda-fp16"), "cuda-fp16", "cuda")
except SettingsError as error:
    print(*error.faults)
"""


def open_with(folder: Path, *arguments: str) -> str:
    """What is said by a process that opens a runner for a GPU, with the driver of a folder."""
    command = [sys.executable, "-c", OPEN, str(BUILTIN_BUNDLE), *arguments]
    done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=True)
    return done.stdout


def test_the_cpu_needs_nothing() -> None:
    check_provider("cpu")


@pytest.mark.skipif(is_gpu_build, reason="needs the CPU build")
def test_a_build_without_cuda_is_told() -> None:
    with pytest.raises(SettingsError, match=r"has no CUDAExecutionProvider: install babelserve\[gpu\]"):
        check_provider("cuda")


@needs_gpu_build
@needs_compiler
def test_cuda_libraries_that_are_missing_are_named(tmp_path: Path) -> None:
    build_stub_driver(tmp_path)

    said = open_with(tmp_path, "no libraries")

    assert said.startswith("device cuda: cuDNN does not load: libcudnn.so.9: cannot open shared object file")
    assert "install babelserve[gpu]" in said


@needs_gpu_build
@needs_compiler
def test_a_driver_that_cuda_cannot_use_is_told(tmp_path: Path) -> None:
    build_stub_driver(tmp_path)

    assert open_with(tmp_path).startswith("device cuda: CUDA failure ")


@needs_gpu_build
def test_a_missing_driver_is_named(tmp_path: Path) -> None:
    expected = (
        "device cuda: ONNX Runtime fell back to CPUExecutionProvider: libcuda.so.1: cannot open shared object file"
    )

    assert open_with(tmp_path).startswith(expected)
