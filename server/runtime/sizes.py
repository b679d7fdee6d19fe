"""How large a buffer should be: larger than needed, so that it seldom changes, but not by much."""

_MOST_SPARE = 1.5  # times what is needed that a buffer may have


def round_up(needed: int, unit: int) -> int:
    """Returns the least multiple of a unit, at least one, that is enough."""
    return max(1, -(-needed // unit)) * unit


def fits(needed: int, size: int) -> bool:
    """Whether a buffer of a size is large enough, and not far too large."""
    return needed <= size <= _MOST_SPARE * needed
