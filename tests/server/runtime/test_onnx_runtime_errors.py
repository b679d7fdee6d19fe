"""What ONNX Runtime says when it fails, in its own words."""

import errno

import pytest

from server.network import DeviceLost, OutOfMemory
from server.runtime.onnx_runtime_errors import advice_on_device, telling_failures_apart

PLACE = "GPU=0 ; hostname=host ; file=/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_execution_provider.cc"
NODE = "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Conv node."
LOST = [
    f"CUDA failure 700: an illegal memory access was encountered ; {PLACE} ; line=448 ; expr=cudaStreamSynchronize();",
    f"CUDA failure 710: device-side assert triggered ; {PLACE}",
    f"CUDA failure 719: unspecified launch failure ; {PLACE}",
    f"CUDA failure 214: uncorrectable ECC error encountered ; {PLACE}",
    f"CUBLAS failure 13: an illegal memory access was encountered ; {PLACE}",
    "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
]
NO_MEMORY = [
    f"CUDA failure 2: out of memory ; {PLACE}",
    f"{NODE} onnxruntime::BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of size 1024",
    f"{NODE} BFCArena::AllocateRawInternal() Available memory of 6624512 is smaller than requested bytes of 20971520",
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Exception during initialization: std::bad_alloc",
    f"CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; {PLACE}",
]
OTHERS = [
    f"{NODE} Invalid input shape: {{700, 2}}",
    f"CUDA failure 209: no kernel image is available for execution on the device ; {PLACE}",
    f"CUDA failure 7000: no such number ; {PLACE}",
]


class Failing:
    """Raises what it is given, as a runner's method."""

    @telling_failures_apart
    def run(self, error: Exception | None) -> str:
        """Says that all is well."""
        if error is not None:
            raise error
        return "well"


def test_what_does_not_fail_returns_what_it_returns() -> None:
    assert Failing().run(None) == "well"
    assert Failing.run.__doc__ == "Says that all is well."


@pytest.mark.parametrize("words", LOST)
def test_a_device_that_is_lost_is_told(words: str) -> None:
    with pytest.raises(DeviceLost, match="^" + words[:8]) as caught:
        Failing().run(RuntimeError(words))

    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory"), *map(RuntimeError, NO_MEMORY)]
)
def test_a_lack_of_memory_is_told(error: Exception) -> None:
    with pytest.raises(OutOfMemory):
        Failing().run(error)


@pytest.mark.parametrize("words", OTHERS)
def test_any_other_failure_is_left_as_it_is(words: str) -> None:
    error = RuntimeError(words)

    with pytest.raises(RuntimeError) as caught:
        Failing().run(error)

    assert caught.value is error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        *((words, "its memory does not suffice: lower --max-rows") for words in NO_MEMORY),
        (OTHERS[1], "this onnxruntime-gpu has no code for the GPU's compute capability"),
        (OTHERS[2], "CUDA failure 7000: no such number: nvidia-smi"),
        (LOST[0], "CUDA failure 700: an illegal memory access was encountered: nvidia-smi"),
    ],
)
def test_a_failure_while_a_model_is_loaded_says_what_to_do(words: str, expected: str) -> None:
    assert advice_on_device(words).startswith(expected)


def test_a_failure_that_is_not_the_devices_has_no_advice() -> None:
    assert advice_on_device(OTHERS[0]) == ""
