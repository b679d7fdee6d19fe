"""What a model takes of a GPU's memory, and what is said where that does not fit; the GPU is only described."""

import uuid
from types import SimpleNamespace

import pytest

from server.bundle.bundle import Bundle
from server.errors import SettingsError
from server.models.device_memory import DeviceMemory, plan_device_memory
from server.network import StepKind
from server.runtime.cuda_device import CudaDevice
from server.runtime.runner import open_runner
from server.settings.settings import Settings

VARIANT = "cuda-fp16"
MIB = 1 << 20


def gpu(free_mib: int | None = 1 << 14) -> CudaDevice:
    """A GPU of 16 GiB; the management library says what is free, or does not know the GPU."""
    nvml = SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=1 << 34, free=handle * MIB),
    )
    return CudaDevice(
        name="A GPU",
        uuid=uuid.UUID(int=0),
        capability=(9, 0),
        cuda=(13, 0),
        total_bytes=1 << 34,
        _nvml=None if free_mib is None else (nvml, free_mib),
    )


def planned(bundle: Bundle, device: CudaDevice, num_models: int = 1, device_memory_mib: int = 0) -> DeviceMemory:
    settings = Settings(max_rows=64, device_memory_mib=device_memory_mib)
    return plan_device_memory(bundle.manifest, VARIANT, settings, device, num_models)


def test_the_caches_are_counted_as_the_decoder_takes_them(tiny_bundle: Bundle) -> None:
    decoder = open_runner(tiny_bundle, VARIANT, "cpu").open_decoder(StepKind.PLAIN, 64)

    assert planned(tiny_bundle, gpu()).caches == decoder.cache_bytes


def test_what_is_free_bounds_nothing_unless_it_is_asked_for(tiny_bundle: Bundle) -> None:
    assert planned(tiny_bundle, gpu()).arena == 0
    assert planned(tiny_bundle, gpu(None)).arena == 0


def test_what_is_allowed_is_shared_by_caches_copies_encoder_and_step(tiny_bundle: Bundle) -> None:
    memory = planned(tiny_bundle, gpu(), device_memory_mib=500)

    assert memory.caches + memory.copies + memory.arena == 500 * MIB


def test_models_share_what_is_allowed(tiny_bundle: Bundle) -> None:
    alone, among_two = (planned(tiny_bundle, gpu(), n, device_memory_mib=500 * n) for n in (1, 2))

    assert alone == among_two


def test_a_gpu_with_too_little_free_is_refused_with_what_is_needed(tiny_bundle: Bundle) -> None:
    expected = r"device cuda: tiny takes \d+ MiB at the least, \d+ for caches of --max-rows 64, .* is free of A GPU"

    with pytest.raises(SettingsError, match=expected):
        planned(tiny_bundle, gpu(free_mib=3))


@pytest.mark.parametrize(
    ("num_models", "device_memory_mib", "expected"),
    [
        (1, 3, r"--device-memory-mib: 3 is not enough: tiny takes"),
        (2, 6, r"--device-memory-mib: 6 for 2 models is not enough: tiny takes"),
        (1, 90, r"--device-memory-mib: 90 is more than is free of A GPU"),
    ],
)
def test_what_is_allowed_must_be_enough_and_free(
    tiny_bundle: Bundle, num_models: int, device_memory_mib: int, expected: str
) -> None:
    with pytest.raises(SettingsError, match=expected):
        planned(tiny_bundle, gpu(free_mib=80), num_models, device_memory_mib=device_memory_mib)


def test_unknown_free_memory_is_no_reason_to_refuse(tiny_bundle: Bundle) -> None:
    assert planned(tiny_bundle, gpu(None), device_memory_mib=90).arena > 0
