import pytest

from server.engine.background_time import BackgroundTime, MeasuredPart
from tests.fakes import FakeClock


@pytest.fixture
def account() -> BackgroundTime:
    return BackgroundTime()


def test_steps_that_give_way_are_due_after_others_and_not_before(account: BackgroundTime) -> None:
    assert not account.is_due

    account.note_others(0.01, share=0.2)

    assert account.is_due


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_they_have_their_share_of_the_time(account: BackgroundTime, share: float) -> None:
    others = background = 0.0
    for _ in range(10_000):
        others += 0.003
        account.note_others(0.003, share)
        if account.is_due:
            background += 0.004
            account.note(0.004)

    assert background / (background + others) == pytest.approx(share, rel=0.01)


def test_nothing_is_owed_to_nobody(account: BackgroundTime) -> None:
    account.note_others(10.0, share=0.0)

    assert not account.is_due


def test_time_that_nobody_else_wanted_counts(account: BackgroundTime) -> None:
    account.note(1.0)

    account.note_others(3.0, share=0.2)
    assert not account.is_due
    account.note_others(2.0, share=0.2)
    assert account.is_due


def test_a_long_idle_time_is_forgotten(account: BackgroundTime) -> None:
    account.note(3600.0)

    account.note_others(9.0, share=0.2)

    assert account.is_due


def test_those_who_have_all_shares_do_not_stop_the_others(account: BackgroundTime) -> None:
    account.note_others(1.0, share=1.0)
    account.note(0.11)

    assert not account.is_due


def test_the_part_of_time_is_what_was_seen_of_late() -> None:
    clock = FakeClock()
    part = MeasuredPart(clock)
    assert part.estimate(0.6) == pytest.approx(0.6), "a guess, as long as nothing is known"

    for _ in range(1000):
        clock.now += 0.1
        part.note(0.09, is_background=False)
        part.note(0.01, is_background=True)
    assert part.estimate(0.6) == pytest.approx(0.16, abs=0.02)
    assert part.estimate(0.0) == pytest.approx(0.09, abs=0.01)

    clock.now += 20.0
    assert part.estimate(0.6) == pytest.approx(0.6, abs=0.01), "it forgets"
