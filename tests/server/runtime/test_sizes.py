import pytest

from server.runtime.sizes import fits, round_up


@pytest.mark.parametrize(("needed", "size"), [(0, 16), (1, 16), (15, 16), (16, 16), (17, 32), (32, 32), (33, 48)])
def test_sizes_are_whole_units_and_at_least_one(needed: int, size: int) -> None:
    assert round_up(needed, 16) == size


@pytest.mark.parametrize(
    ("size", "does_fit"), [(31, False), (32, True), (40, True), (48, True), (49, False), (1000, False)]
)
def test_a_buffer_fits_that_is_large_enough_and_at_most_half_too_large(size: int, does_fit: bool) -> None:
    assert fits(32, size) is does_fit
