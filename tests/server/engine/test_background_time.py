import pytest

from server.engine.background_time import BackgroundTime


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
