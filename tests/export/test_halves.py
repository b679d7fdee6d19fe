"""Weights of floats in half precision: stored once where that is exact, and left alone where it is not."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from export.halves import share_halves
from server.bundle.bundle import Bundle
from server.bundle.files import describe_file
from server.bundle.graphs import HALVES_FILE, WEIGHTS_FILE
from server.bundle.variant_files import Variant, join_weights
from server.bundle.variants import VARIANTS

EXACT = np.array([1.0, -0.0, np.inf, -2.5, 65504.0, 2.0**-24] * 500, np.float32)
INEXACT = np.array([0.1, 1e9, 1e-9], np.float32)


def write(directory: Path, weights: dict[str, NDArray[np.generic]]) -> dict[str, Variant]:
    """Writes variants that are their weights alone."""
    written = {}
    for name, values in weights.items():
        path = directory / name / WEIGHTS_FILE
        path.parent.mkdir()
        values.tofile(path)
        written[name] = Variant(
            dtype=VARIANTS[name].dtype, embedding_offset=0, opsets={}, files={WEIGHTS_FILE: describe_file(path)}
        )
    return written


def whole(directory: Path, name: str, variant: Variant) -> bytes:
    """Returns a variant's weights as the server puts them together."""
    own, halves = (directory / name / WEIGHTS_FILE).read_bytes(), (directory / HALVES_FILE).read_bytes()
    return own if variant.halves is None else join_weights(own, halves, variant.dtype)


def half(values: NDArray[np.float32]) -> NDArray[np.float16]:
    with np.errstate(over="ignore"):
        return values.astype(np.float16)


@pytest.mark.parametrize("num_inexact", [0, 3])
def test_what_is_exact_in_half_precision_is_shared(tmp_path: Path, num_inexact: int) -> None:
    values = np.concatenate([INEXACT[:num_inexact], EXACT])
    weights = {"cpu-fp32": values, "cpu-int8": np.ones(99, np.int8), "cuda-fp16": half(values)}
    written = write(tmp_path, weights)

    shared = share_halves(tmp_path, written)

    assert (tmp_path / HALVES_FILE).stat().st_size == EXACT.nbytes / 2
    assert shared["cpu-int8"] == written["cpu-int8"]
    for name, variant in shared.items():
        assert whole(tmp_path, name, variant) == weights[name].tobytes()
        assert variant.weights_bytes == weights[name].nbytes
        assert variant.files[WEIGHTS_FILE] == describe_file(tmp_path / name / WEIGHTS_FILE)
    assert shared["cpu-fp32"].files[WEIGHTS_FILE].bytes == 4 * num_inexact
    assert shared["cuda-fp16"].files[WEIGHTS_FILE].bytes == 2 * num_inexact


@pytest.mark.parametrize("values", [np.concatenate([EXACT, INEXACT]), np.concatenate([np.tile(INEXACT, 1001), EXACT])])
def test_weights_of_single_precision_stay_what_they_are(tmp_path: Path, values: NDArray[np.float32]) -> None:
    written = write(tmp_path, {"cpu-fp32": values, "cuda-fp16": half(values)})

    assert share_halves(tmp_path, written) == written

    assert (tmp_path / "cpu-fp32" / WEIGHTS_FILE).read_bytes() == values.tobytes()
    assert not (tmp_path / HALVES_FILE).exists()


def test_a_variant_with_other_halves_keeps_its_own(tmp_path: Path) -> None:
    others = half(EXACT)
    others[-1] = 7
    written = write(tmp_path, {"cpu-fp32": EXACT, "cuda-fp16": others})

    shared = share_halves(tmp_path, written)

    assert shared["cuda-fp16"] == written["cuda-fp16"]
    assert whole(tmp_path, "cuda-fp16", shared["cuda-fp16"]) == others.tobytes()
    assert whole(tmp_path, "cpu-fp32", shared["cpu-fp32"]) == EXACT.tobytes()


def test_without_cpu_fp32_there_is_nobody_to_share_with(tmp_path: Path) -> None:
    written = write(tmp_path, {"cuda-fp16": half(EXACT)})

    assert share_halves(tmp_path, written) == written


def test_all_variants_of_a_bundle_share(tiny_bundle: Bundle) -> None:
    variants = tiny_bundle.manifest.variants

    assert {name for name, variant in variants.items() if variant.halves} == {"cpu-fp32", "cuda-fp16"}
