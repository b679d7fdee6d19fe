"""Caches of signed bytes, for `export.quantize`: what of a channel's range becomes a byte.

A range is how far each channel goes below zero and above, [2, H, D], as `export.calibrate` finds it.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from export.columns import LEAST, LEVELS

# An Identity that reads a cache of one head is named by the cache, then what it reads it for, then this.
READ = ".read"

# Nodes, and the constants that they need by name.
Replacement = tuple[list[onnx.NodeProto], dict[str, NDArray[np.generic]]]


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


def identity_nodes(
    node: onnx.NodeProto, goes_into: str | None, ranges: Mapping[str, NDArray[np.float32]]
) -> Replacement:
    """Returns what an Identity becomes in int8: itself, unless it writes a cache or its name ends with `READ`.

    Args:
        node: from [rows, H * D] if it writes one, and from [..., D] of one head if it reads one.
        goes_into: the cache that its output goes into, if any.
        ranges: of all caches, by name.
    """
    name = node.output[0]
    if goes_into is not None:
        return _rounded(node.input[0], name, goes_into, ranges[goes_into])
    if name.endswith(READ):
        cache = ".".join(name.split(".")[:2])
        return _read(node.input[0], name, cache, ranges[cache])
    return [node], {}


def _rounded(x: str, name: str, cache: str, reach: NDArray[np.float32]) -> Replacement:
    """Adds units of the scale, which then are rounded: ONNX Runtime is slow where each channel has a scale."""
    centred, units = f"{name}.centred", f"{name}.units"
    constants: dict[str, NDArray[np.generic]] = {
        f"{cache}.middle": cache_middles(cache, reach),
        f"{cache}.per_unit": 1 / cache_scales(cache, reach),
        "unit_scale": np.array(1, np.float32),
        "zero_int8": np.array(0, np.int8),
    }
    middle, per_unit, *unit = constants
    nodes = [
        helper.make_node("Sub", [x, middle], [centred], name=centred),
        helper.make_node("Mul", [centred, per_unit], [units], name=units),
        helper.make_node("QuantizeLinear", [units, *unit], [name], name=name),
    ]
    return nodes, constants


def _read(x: str, name: str, cache: str, reach: NDArray[np.float32]) -> Replacement:
    scale, middle, floats, scaled = (f"{cache}.scale", f"{cache}.middle", f"{name}.float", f"{name}.scaled")
    nodes = [
        helper.make_node("Cast", [x], [floats], name=floats, to=TensorProto.FLOAT),
        helper.make_node("Mul", [floats, scale], [scaled], name=scaled),
        helper.make_node("Add", [scaled, middle], [name], name=name),
    ]
    return nodes, {scale: cache_scales(cache, reach), middle: cache_middles(cache, reach)}
