import pytest

from server.engine.limits import Footprint
from tests.fakes import lane_limits


@pytest.mark.parametrize(("beam_size", "positions"), [(1, 2), (2, 3), (4, 5), (5, 7), (16, 20)])
def test_a_beam_takes_its_rows_and_a_slot_for_each_four_of_them(beam_size: int, positions: int) -> None:
    assert Footprint.of(beam_size, source_tokens=7) == Footprint(beam_size, positions, 7 * positions)


def test_footprints_add_up_and_come_off_again() -> None:
    one, other = Footprint.of(4, 10), Footprint.of(1, 3)

    both = one + other

    assert both == Footprint(4 + 1, 5 + 2, 5 * 10 + 2 * 3)
    assert both - other == one
    assert one - one == Footprint()


def test_a_batch_may_be_full_in_each_respect_and_no_more() -> None:
    limits = lane_limits(max_rows=6, max_cached_positions=100)

    assert limits.allow(Footprint(rows=6, cache_rows=8, positions=100), longest=25)
    assert not limits.allow(Footprint(rows=7, cache_rows=8, positions=100), longest=25)
    assert not limits.allow(Footprint(rows=6, cache_rows=8, positions=101), longest=25)


def test_one_long_row_may_pad_the_others_to_twice_what_is_counted() -> None:
    limits = lane_limits(max_cached_positions=100)

    assert limits.allow(Footprint(rows=4, cache_rows=8, positions=10), longest=25)
    assert not limits.allow(Footprint(rows=4, cache_rows=8, positions=10), longest=26)


def test_limits_beside_a_footprint_are_what_it_leaves() -> None:
    left = lane_limits(max_rows=6, max_cached_positions=100).beside(Footprint(rows=4, cache_rows=5, positions=60))

    assert left.allow(Footprint(rows=2, cache_rows=3, positions=40), longest=10)
    assert not left.allow(Footprint(rows=3, cache_rows=3, positions=40), longest=10)
    assert not left.allow(Footprint(rows=2, cache_rows=3, positions=41), longest=10)
