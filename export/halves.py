"""The float weights of a written bundle stored once, in half precision, as far as they are exact in it.

Those of a checkpoint are exact; what is computed, such as sinusoidal positions, is not. The graphs have such tables
first, so a variant keeps what comes before the last inexact value. It shares the rest only if its weights, put together
again, have the hash that they had: what was proved stays proved.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from export.files import EXACT
from server.bundle.files import describe_file
from server.bundle.graphs import HALVES_FILE, WEIGHTS_FILE
from server.bundle.variant_files import Variant, widened

_CHUNK = 1 << 20  # values


def share_halves(directory: Path, variants: Mapping[str, Variant]) -> dict[str, Variant]:
    """Moves weights of a bundle's variants to `HALVES_FILE`, if more than half of cpu-fp32's can be.

    Args:
        directory: of the bundle.
        variants: its own, each with all of its weights.

    Returns:
        The variants as they are now.
    """
    if EXACT not in variants:
        return dict(variants)
    weights = np.memmap(directory / EXACT / WEIGHTS_FILE, np.float32, "r")
    num_own = _num_own(weights)
    if num_own > len(weights) // 2:
        return dict(variants)
    path = directory / HALVES_FILE
    with path.open("wb") as file:
        for start in range(num_own, len(weights), _CHUNK):
            file.write(weights[start : start + _CHUNK].astype(np.float16).data)
    del weights
    return {name: _shared(directory / name, variant, path, num_own) for name, variant in variants.items()}


def _num_own(weights: NDArray[np.float32]) -> int:
    """Returns how many values there are up to the last one that is inexact in float16."""
    for start in reversed(range(0, len(weights), _CHUNK)):
        chunk = weights[start : start + _CHUNK]
        with np.errstate(over="ignore"):
            again = chunk.astype(np.float16).astype(np.float32)
        inexact = np.flatnonzero(again.view(np.uint32) != chunk.view(np.uint32))
        if len(inexact):
            return start + int(inexact[-1]) + 1
    return 0


def _shared(directory: Path, variant: Variant, path: Path, num_own: int) -> Variant:
    """Cuts a variant's weights off where the halves go on, unless these are others."""
    if variant.dtype == "int8":
        return variant
    own = directory / WEIGHTS_FILE
    own_bytes = num_own * np.dtype(variant.dtype).itemsize
    with own.open("rb") as file:
        digest = hashlib.sha256(file.read(own_bytes))
    for chunk in widened(np.memmap(path, np.float16, "r"), variant.dtype):
        digest.update(chunk)
    if digest.hexdigest() != variant.files[WEIGHTS_FILE].sha256:
        return variant
    os.truncate(own, own_bytes)
    files = {**variant.files, WEIGHTS_FILE: describe_file(own)}
    return replace(variant, files=files, halves=describe_file(path))
