"""Caches of signed bytes, for `export.quantize`: what of a channel's range becomes a byte.

A range is how far each channel goes below zero and above, [2, H, D], as `export.calibrate` finds it.
"""

import numpy as np
from numpy.typing import NDArray

from export.columns import LEAST, LEVELS


def cache_name(name: str) -> str:
    """Returns the name of the cache that a graph's output goes into."""
    return name.removeprefix("new_").removeprefix("written_")


def cache_scales(name: str, reach: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns a scale per channel, [H * D], of the cache of a name, such as "cross_key.0"."""
    below, above = reach.reshape(2, -1)
    largest = (below + above) / 2 if _holds_keys(name) else np.maximum(below, above)
    scales: NDArray[np.float32] = np.maximum(largest / LEVELS, LEAST, dtype=np.float32)
    return scales


def cache_middles(name: str, reach: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns what is taken off each channel before it is cached, [H * D]: zeros but for keys."""
    below, above = reach.reshape(2, -1)
    return ((above - below) / 2 if _holds_keys(name) else np.zeros_like(above)).astype(np.float32)


def is_self(name: str) -> bool:
    """Whether a cache, or an output that goes into it, is of self-attention."""
    return cache_name(name).startswith("self_")


def _holds_keys(name: str) -> bool:
    return "_key." in name
