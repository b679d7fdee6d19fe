import pytest

from server.bundle.manifest import Dimensions, Limits
from server.bundle.states import attention_states
from server.runtime.sizes import cache_shapes, fits, round_up


@pytest.mark.parametrize(("needed", "size"), [(0, 16), (1, 16), (15, 16), (16, 16), (17, 32), (32, 32), (33, 48)])
def test_sizes_are_whole_units_and_at_least_one(needed: int, size: int) -> None:
    assert round_up(needed, 16) == size


@pytest.mark.parametrize(
    ("size", "does_fit"), [(31, False), (32, True), (40, True), (48, True), (49, False), (1000, False)]
)
def test_a_buffer_fits_that_is_large_enough_and_at_most_half_too_large(size: int, does_fit: bool) -> None:
    assert fits(32, size) is does_fit


def test_caches_of_a_device_are_as_long_as_the_longest_sentence() -> None:
    sizes = Dimensions(vocab_size=100, d_model=64, num_heads=4, head_dim=16, encoder_layers=2, decoder_layers=3)
    limits = Limits(max_source_tokens=30, max_target_tokens=20, max_beam_size=4)

    shapes = cache_shapes(attention_states(3, 4, 16), sizes, limits, "float16", max_rows=8)

    assert len(shapes) == 12
    assert set(shapes.values()) == {((8, 4, 20, 16), "float16"), ((8, 4, 30, 16), "float16")}
