"""How large buffers are: in host memory larger than needed, so that they seldom change, but not by much."""

from collections.abc import Sequence

from server.bundle.graphs import cache_names
from server.bundle.manifest import Dimensions, Limits
from server.bundle.states import State

_MOST_SPARE = 1.5  # times what is needed that a buffer may have


def round_up(needed: int, unit: int) -> int:
    """Returns the least multiple of a unit, at least one, that is enough."""
    return max(1, -(-needed // unit)) * unit


def fits(needed: int, size: int) -> bool:
    """Whether a buffer of a size is large enough, and not far too large."""
    return needed <= size <= _MOST_SPARE * needed


def cache_shapes(
    states: Sequence[State], sizes: Dimensions, limits: Limits, dtype: str, max_rows: int
) -> dict[str, tuple[tuple[int, int, int, int], str]]:
    """Returns shape and type of each cache, by its name: for so many rows, each as long as the longest may be."""
    shapes = {
        state.name: (state.tensor_shape(max_rows, limits.max_target_tokens), state.dtype_in(dtype)) for state in states
    }
    cross_shape = max_rows, sizes.num_heads, limits.max_source_tokens, sizes.head_dim
    return shapes | dict.fromkeys(cache_names("cross", sizes.decoder_layers), (cross_shape, dtype))
