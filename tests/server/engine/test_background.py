import pytest

from server.engine.background import Background
from tests.fakes import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def background(clock: FakeClock) -> Background:
    return Background(clock)


def test_the_background_has_its_share_until_a_second_after_the_foreground(
    background: Background, clock: FakeClock
) -> None:
    shares = [background.share(0.75)]
    for is_background, seconds in ((False, 0.99), (True, 0.01)):
        background.note_seconds(0.1, is_background=is_background, is_used=True)
        shares.append(background.share(0.75))
        clock.now += seconds
        shares.append(background.share(0.75))

    assert shares == [0.75, 0.125, 0.125, 0.125, 0.75]


def test_the_pace_is_the_part_of_the_time_and_at_first_all_of_it(background: Background) -> None:
    paces = [background.pace]
    background.note_seconds(0.75, is_background=False, is_used=True)
    paces.append(background.pace)
    background.note_seconds(2.0, is_background=True, is_used=True)
    paces.append(background.pace)

    assert paces == pytest.approx([1.0, 0.25 / 1.0, 2.25 / 3.0])


def test_time_counts_only_while_a_flow_is_in_the_background(background: Background) -> None:
    background.note_seconds(0.75, is_background=False, is_used=False)

    assert background.pace == 1.0
