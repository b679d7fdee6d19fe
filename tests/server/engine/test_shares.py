"""Rows of flows, with integers only."""

import pytest

from server.engine.flow import Flow
from server.engine.sentence import Sentence
from server.engine.shares import Shares
from tests.fakes import FakeClock
from tests.server.engine.parts import new_sentence

A, B = Flow(name="a"), Flow(name="b", weight=3.0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def shares(clock: FakeClock) -> Shares:
    return Shares(40, clock)


def start(shares: Shares, flow: Flow, beam_size: int, work_seconds: float = 1.0) -> Sentence | None:
    """Starts a sentence if it may; so dear that it is more work than any share, unless said otherwise."""
    sentence = new_sentence(beam_size=beam_size, flow=flow)
    if not shares.allow(sentence, work_seconds):
        return None
    shares.start([sentence])
    return sentence


def test_whoever_is_alone_has_all(shares: Shares) -> None:
    shares.ask(A)

    assert shares.share(A) == 1.0
    assert all(start(shares, A, 16) for _ in range(10)), "the lane's own limit is another's business"


def test_active_flows_have_their_shares_by_weight(shares: Shares) -> None:
    shares.ask(A)
    shares.ask(B)

    assert (shares.share(A), shares.share(B)) == (0.25, 0.75)
    assert [bool(start(shares, A, 5)) for _ in range(3)] == [True, True, False]
    assert [bool(start(shares, B, 15)) for _ in range(3)] == [True, True, False]


def test_whoever_comes_for_the_first_time_has_a_share_like_the_others(shares: Shares) -> None:
    assert shares.share(B) == 1.0

    shares.ask(A)

    assert shares.share(B) == 0.75


def test_a_flow_that_has_had_little_work_may_take_whatever_rows_are_free(shares: Shares) -> None:
    shares.ask(A)
    shares.ask(B)

    assert all(start(shares, A, 5, work_seconds=1e-6) for _ in range(8))


def test_work_fades(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A)
    shares.ask(B)
    while start(shares, A, 5):
        pass

    clock.now = 60.0
    shares.ask(B)

    assert start(shares, A, 5)


def test_a_flow_that_runs_nothing_may_have_a_sentence_beyond_its_share(shares: Shares) -> None:
    shares.ask(A)
    shares.ask(B)

    assert start(shares, A, 16)
    assert not start(shares, A, 1)


def test_rows_that_are_left_may_be_taken_again(shares: Shares) -> None:
    shares.ask(A)
    shares.ask(B)
    sentence = start(shares, A, 10)
    assert sentence

    shares.end([sentence])

    assert start(shares, A, 10)


def test_a_flow_that_has_been_quiet_leaves_its_share_to_the_others(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A)
    shares.ask(B)
    clock.now = 0.9
    shares.ask(A)
    assert shares.share(A) == 0.25

    clock.now = 1.1
    assert shares.share(A) == 1.0


def test_a_flow_whose_sentences_run_is_not_quiet(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A)
    shares.ask(B)
    assert start(shares, B, 1)
    clock.now = 100.0

    assert shares.share(A) == 0.25
