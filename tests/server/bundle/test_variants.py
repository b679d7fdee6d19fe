import numpy as np
import pytest

from server.bundle.variants import DEVICES, VARIANTS


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variants_name_says_its_device_and_precision(name: str) -> None:
    device, precision = name.split("-")

    assert VARIANTS[name].device == device
    assert VARIANTS[name].dtype == {"fp32": "float32", "fp16": "float16", "int8": "int8"}[precision]


def test_every_device_has_a_variant() -> None:
    assert {kind.device for kind in VARIANTS.values()} == set(DEVICES)


def test_caches_are_on_the_device_unless_that_is_the_cpu() -> None:
    assert {name for name, kind in VARIANTS.items() if kind.is_on_device} == {"cuda-fp16"}


def test_only_full_precision_is_exact() -> None:
    assert {name for name, kind in VARIANTS.items() if kind.is_exact} == {"cpu-fp32"}


@pytest.mark.parametrize(("name", "source_tokens"), [("cpu-int8", 2048), ("cpu-fp32", 2730), ("cuda-fp16", 65536)])
def test_the_default_cache_holds_so_many_source_tokens_of_transformer_base(name: str, source_tokens: int) -> None:
    kind = VARIANTS[name]
    position_bytes = 2 * 6 * 512 * np.dtype(kind.dtype).itemsize  # key and value of 6 layers

    assert (kind.max_cache_mib << 20) // position_bytes // 2 == source_tokens  # its own position and its translation's
