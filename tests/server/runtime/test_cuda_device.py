"""Which GPU there is, and what is said of one that cannot be used: told by a driver that does nothing else."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.runtime.cuda_device import has_cuda_device
from tests.acceptance.stub_driver import build_stub_driver, environment

FIND = """
from server.errors import SettingsError
from server.runtime.cuda_device import find_cuda_device, has_cuda_device
try:
    device = find_cuda_device()
except SettingsError as error:
    print(has_cuda_device(), *error.faults, sep="|")
else:
    print(has_cuda_device(), device, device.uuid, device.memory, find_cuda_device() is device, sep="|")
"""

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
needs_nvml = pytest.mark.skipif(importlib.util.find_spec("pynvml") is None, reason="needs nvidia-ml-py")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    build_stub_driver(folder)
    return folder


def find(folder: Path, **told: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", FIND], env=environment(folder, **told), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_whether_there_is_a_cuda_device_is_known_without_its_libraries() -> None:
    assert isinstance(has_cuda_device(), bool)


@needs_compiler
@needs_nvml
@pytest.mark.parametrize("kind", ["GPU", "MIG"])
def test_a_gpu_or_a_part_of_one_is_described_with_its_free_memory(driver: Path, kind: str) -> None:
    assert find(driver, STUB_KIND=kind) == (
        "True|Stub GPU (compute capability 9.0, driver 580.00 for CUDA 13.0, 15360 of 16384 MiB free)"
        "|00010203-0405-0607-0809-0a0b0c0d0e0f|(17179869184, 16106127360)|True"
    )


@needs_compiler
@pytest.mark.parametrize("told", [{"STUB_NVML": "9"}, {"STUB_KIND": "XYZ"}])
def test_a_gpu_that_the_management_library_does_not_know_has_unknown_free_memory(
    driver: Path, told: dict[str, str]
) -> None:
    assert find(driver, **told).startswith("True|Stub GPU (compute capability 9.0, driver ")
    assert find(driver, **told).endswith("for CUDA 13.0, 16384 MiB)|00010203-0405-0607-0809-0a0b0c0d0e0f|None|True")


@needs_compiler
@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {"STUB_CUDA": "12080"},
            "True|device cuda: the driver knows CUDA up to 12.8, ONNX Runtime needs 13.0: install a",
        ),
        (
            {"STUB_CAPABILITY": "70"},
            "True|device cuda: Stub GPU has compute capability 7.0, less than 7.5, the least of",
        ),
        (
            {"STUB_INIT": "803"},
            "True|device cuda: the driver says CUDA_ERROR_OF_THE_STUB (803): kernel module and driver",
        ),
        (
            {"STUB_INIT": "5"},
            "True|device cuda: the driver says CUDA_ERROR_OF_THE_STUB (5): nvidia-smi on the host says",
        ),
        (
            {"STUB_INIT": "100"},
            "False|device cuda: the driver says CUDA_ERROR_OF_THE_STUB (100): start a container with",
        ),
    ],
)
def test_a_gpu_that_cannot_be_used_is_refused_with_what_to_do(
    driver: Path, told: dict[str, str], expected: str
) -> None:
    assert find(driver, **told).startswith(expected)


@needs_compiler
def test_a_variable_that_hides_every_device_is_named(driver: Path) -> None:
    found = find(driver, STUB_INIT="100", CUDA_VISIBLE_DEVICES="4")

    assert found.endswith("give its pod nvidia.com/gpu; CUDA_VISIBLE_DEVICES is '4'")


@pytest.mark.skipif(has_cuda_device(), reason="needs a machine without an NVIDIA driver")
def test_without_a_driver_it_says_so(tmp_path: Path) -> None:
    expected = "False|device cuda: there is no NVIDIA driver, libcuda.so.1: install one of the 580 series or newer"

    assert find(tmp_path).startswith(expected)
