"""Matrices as signed bytes with a scale for each column, for `export.quantize`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVELS = 127  # of a signed byte
LEAST = 1e-12  # a range of zero would divide by zero
_AT_A_TIME = 1 << 22  # numbers: a whole embedding in floating point, several times over, is most of what there is
_FEW_ROWS = 8  # that tell nearly every column which is on no grid
_TOLERANCE = 1e-3  # of a step: what dividing by somebody's scale in float32 leaves is a thirtieth of that


class Columns(NamedTuple):
    """A matrix [K, N].

    Attributes:
        quantized: int8 [K, N] in -127..127.
        scales: float32 [N]; quantized * scales is close to the matrix.
        are_exact: whether it is the matrix, which was int8 before.
    """

    quantized: NDArray[np.int8]
    scales: NDArray[np.float32]
    are_exact: bool


def quantize_columns(matrix: NDArray[np.float32]) -> Columns:
    """Rounds each column to the nearest of 255 levels, or to none if it is on a grid already.

    Weights of a model that was int8 before are whole multiples of its scale: other levels would round them again.
    """
    largest = np.maximum(matrix.max(axis=0), -matrix.min(axis=0))
    largest = np.maximum(largest, LEAST).astype(np.float32)
    scales = np.empty_like(largest)
    quantized = np.empty_like(matrix, np.int8)
    are_exact = True
    step = max(1, _AT_A_TIME // len(matrix))
    for start in range(0, len(scales), step):
        columns = slice(start, start + step)
        num_levels, on_grid = _find_grids(matrix[:, columns], largest[columns])
        scales[columns] = largest[columns] / num_levels
        quantized[:, columns] = np.rint(matrix[:, columns] / scales[columns])
        are_exact = are_exact and on_grid
    return Columns(quantized, scales, are_exact)


def _find_grids(matrix: NDArray[np.float32], largest: NDArray[np.float32]) -> tuple[NDArray[np.float32], bool]:
    """Returns the fewest levels that are all numbers of each column, or 127, and whether all columns have such."""
    num_levels = np.full_like(largest, LEVELS)
    unknown = np.arange(len(largest))
    for count in range(1, LEVELS + 1):
        steps = np.float32(count) / largest
        fitting = unknown[_are_whole(matrix[:_FEW_ROWS, unknown] * steps[unknown])]
        fitting = fitting[_are_whole(matrix[:, fitting] * steps[fitting])]
        num_levels[fitting] = count
        unknown = np.setdiff1d(unknown, fitting, assume_unique=True)
    return num_levels, not len(unknown)


def _are_whole(columns: NDArray[np.float32]) -> NDArray[np.bool_]:
    off: NDArray[np.float32] = np.abs(columns - np.rint(columns)).max(axis=0)
    return off < _TOLERANCE
