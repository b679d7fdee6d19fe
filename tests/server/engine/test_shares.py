"""Rows of flows, with integers only."""

import pytest

from server.engine.cost import CostModel
from server.engine.flow import Flow
from server.engine.limits import EngineLimits
from server.engine.sentence import Sentence
from server.engine.shares import Shares
from tests.fakes import FakeClock, lane_limits
from tests.server.engine.parts import new_sentence

A, B = Flow(name="a"), Flow(name="b", weight=3.0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def new_shares(clock: FakeClock, step_seconds: float) -> Shares:
    cost = CostModel(40)
    cost.observe_step(40, step_seconds, busy_rows=0)
    limits = EngineLimits(num_lanes=1, lane=lane_limits(max_rows=40), max_waiting_tokens=1, max_waiting_sentences=1)
    return Shares(limits, cost, clock)


@pytest.fixture
def shares(clock: FakeClock) -> Shares:
    """Of 40 rows, on which any sentence is more work than any share."""
    return new_shares(clock, step_seconds=40.0)


def start(shares: Shares, flow: Flow, beam_size: int) -> Sentence | None:
    """Starts a sentence if it may."""
    sentence = new_sentence(beam_size=beam_size, flow=flow)
    if not shares.allow(sentence):
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
    assert [bool(start(shares, flow, 5)) for flow in (A, B, A, A)] == [True, True, True, False]
    assert [bool(start(shares, B, 5)) for _ in range(6)] == [True, True, True, True, True, False]


def test_half_a_share_is_kept_beside_one_who_has_had_less_than_its_own(shares: Shares) -> None:
    shares.ask(A)
    shares.ask(B)

    assert [bool(start(shares, B, 5)) for _ in range(5)] == [True, True, True, False, False]
    assert start(shares, A, 5)
    assert start(shares, B, 5)


def test_who_is_modest_has_had_little_work_beside_others(shares: Shares) -> None:
    shares.ask(A)
    assert not shares.is_modest(A), "it is alone"
    assert shares.is_modest(B)

    shares.ask(B)
    start(shares, B, 5)

    assert shares.is_modest(A)
    assert not shares.is_modest(B)


def test_whoever_comes_for_the_first_time_has_a_share_like_the_others(shares: Shares) -> None:
    assert shares.share(B) == 1.0

    shares.ask(A)

    assert shares.share(B) == 0.75


def test_a_flow_that_has_had_little_work_may_take_whatever_rows_are_free(clock: FakeClock) -> None:
    shares = new_shares(clock, step_seconds=4e-5)
    shares.ask(A)
    shares.ask(B)

    assert shares.is_modest(A)
    assert all(start(shares, A, 5) for _ in range(8))
    assert shares.is_modest(A)


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
