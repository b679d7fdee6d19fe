"""Rows of flows, with integers only."""

from collections import deque

import pytest

from server.engine.cost import CostModel
from server.engine.flow import Flow
from server.engine.flow_queue import WaitingRequest
from server.engine.limits import EngineLimits
from server.engine.shares import Shares
from tests.fakes import FakeClock, lane_limits
from tests.server.engine.parts import new_sentence

A, B, C = Flow(name="a"), Flow(name="b", weight=3.0), Flow(name="c")
ROW_STEP_SECONDS = 0.01
HALF = 0.25 / ROW_STEP_SECONDS  # row-steps: of the time that counts
ALL = 1000 * HALF  # more than there is


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def shares(clock: FakeClock) -> Shares:
    """Of 40 rows."""
    cost = CostModel(40)
    cost.observe_step(40, 40 * ROW_STEP_SECONDS, busy_rows=0)
    limits = EngineLimits(num_lanes=1, lane=lane_limits(max_rows=40), max_waiting_tokens=1, max_waiting_sentences=1)
    return Shares(limits, cost, clock)


def request_of(flow: Flow, beam_size: int = 1, *, is_large: bool = False) -> WaitingRequest:
    """Returns a request that has had its burst, or not."""
    sentences = deque(new_sentence(beam_size=beam_size, flow=flow) for _ in range(2))
    request = WaitingRequest(sentences, work=2.0, burst=0.0 if is_large else 1000.0, key=(0, 0.0, 0))
    request.pop()
    return request


def start(shares: Shares, flow: Flow, beam_size: int, *, is_large: bool = False) -> str:
    """Starts a sentence where it may; returns where."""
    request = request_of(flow, beam_size, is_large=is_large)
    for is_background in (False, True):
        if shares.allow(request, is_background=is_background):
            shares.start([request.pop()], is_background=is_background)
            return "background" if is_background else "foreground"
    return "nowhere"


def test_whoever_is_alone_has_all(shares: Shares) -> None:
    shares.ask(A, ALL)

    assert (shares.share(A), shares.pace(A)) == (1.0, 1.0)
    assert not shares.is_modest(A), "it is alone"
    assert [start(shares, A, 16) for _ in range(10)] == ["foreground"] * 10, (
        "the lane's own limit is another's business"
    )


def test_a_flow_is_forgotten_when_it_has_not_asked_for_long_and_runs_nothing(shares: Shares, clock: FakeClock) -> None:
    running = new_sentence(beam_size=5, flow=B)
    shares.ask(A, ALL)
    shares.ask(B, ALL)
    shares.start([running])
    clock.now += 60.0

    shares.ask(C, ALL)
    assert list(shares._activities) == ["b", "c"]
    shares.end([running])
    shares.ask(C, ALL)
    assert list(shares._activities) == ["c"]


def test_active_flows_have_their_shares_by_weight(shares: Shares) -> None:
    shares.ask(A, ALL)
    shares.ask(B, ALL)

    assert (shares.share(A), shares.share(B)) == (0.25, 0.75)
    assert [start(shares, A, 5) for _ in range(3)] == ["background", "background", "nowhere"]
    assert [start(shares, B, 5) for _ in range(7)] == ["background"] * 6 + ["nowhere"]


def test_a_flow_that_asks_for_little_comes_first_and_takes_whatever_rows_are_free(
    shares: Shares, clock: FakeClock
) -> None:
    shares.ask(A, HALF / 2)
    shares.ask(B, ALL)
    clock.now = 0.5
    shares.ask(A, HALF / 2)
    shares.ask(B, ALL)

    assert (shares.is_modest(A), shares.is_modest(B)) == (True, False)
    assert [start(shares, A, 5) for _ in range(8)] == ["foreground"] * 8
    assert [start(shares, B, 5) for _ in range(7)] == ["background"] * 6 + ["nowhere"]


def test_a_flow_of_which_little_is_known_has_its_share_of_the_rows_few_of_them_in_front(
    shares: Shares, clock: FakeClock
) -> None:
    shares.ask(A, HALF / 5)
    clock.now = 0.1
    shares.ask(B, HALF / 5)
    assert start(shares, A, 5) == "foreground"
    assert not shares.allow(request_of(A, 5)), "it is held"
    assert shares.background_share() == 0.25
    assert [start(shares, A, 5) for _ in range(2)] == ["background", "nowhere"]

    clock.now = 0.5
    shares.ask(A, HALF / 5)
    assert start(shares, A, 5) == "foreground"


def test_a_flood_gives_way_for_a_second_whatever_it_asks_for_then(shares: Shares, clock: FakeClock) -> None:
    seen = []
    for clock.now, num_calls in ((0.0, 25), (0.9, 1), (1.1, 1)):
        shares.ask(C, HALF / 10)
        shares.ask(Flow(name="a", num_calls=num_calls), HALF / 10)
        asked = shares._time_asked(shares._activities["a"], clock.now)
        seen.append((shares.is_modest(A), round(asked, 1)))

    assert seen == [(False, 1.2), (False, 0.3), (True, 0.2)]


def test_calls_that_were_refused_unread_count_as_asked_for(shares: Shares) -> None:
    shares.ask(A, HALF / 4)
    shares.ask(Flow(name="c", num_calls=100), HALF / 4)

    assert start(shares, C, 5) == "background"


def test_work_counts_as_much_as_it_costs_in_full_batches(clock: FakeClock) -> None:
    cost = CostModel(40)
    cost.observe_step(40, 40 * ROW_STEP_SECONDS, busy_rows=0)
    for _ in range(20):
        cost.observe_step(4, 10 * ROW_STEP_SECONDS, busy_rows=1)  # somebody who gives way waits
    limits = EngineLimits(num_lanes=1, lane=lane_limits(max_rows=40), max_waiting_tokens=1, max_waiting_sentences=1)
    shares = Shares(limits, cost, clock)

    for flow in (A, C):
        shares.ask(flow, 0.4 * HALF)

    assert shares.is_modest(A)


def test_what_some_leave_is_divided_among_the_others(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A, 2.0 * HALF * 0.1)
    shares.ask(B, ALL)
    assert [shares.pace(A), shares.pace(B)] == pytest.approx([1.0, 0.9])

    shares.ask(C, ALL)
    clock.now = 0.03  # the level is good for a moment

    assert shares.pace(B) == pytest.approx(0.9 * 0.75, rel=0.01)
    assert shares.pace(C) == pytest.approx(0.9 * 0.25, rel=0.01)


def test_nobody_gives_way_while_there_is_time_for_all(shares: Shares, clock: FakeClock) -> None:
    for clock.now in (0.0, 0.5):
        shares.ask(A, 0.6 * HALF)
        shares.ask(B, 0.6 * HALF)

    assert (shares.is_modest(A), shares.is_modest(B)) == (True, True)
    assert {start(shares, flow, 5) for flow in (A, B) for _ in range(8)} == {"foreground"}


def test_flows_that_ask_for_about_as_much_as_each_other_share_their_steps(shares: Shares) -> None:
    shares.ask(A, 1.2 * HALF)
    shares.ask(C, 1.4 * HALF)

    assert [start(shares, flow, 5) for flow in (A, C)] == ["foreground"] * 2


def test_who_is_refused_and_asks_for_more_than_its_part_gives_way(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A, HALF)
    shares.ask(C, 1.2 * HALF)
    shares.ask(C, 0.0, is_refused=True)
    assert [start(shares, flow, 2) for flow in (A, C)] == ["foreground", "background"]

    shares.ask(A, 0.0, is_refused=True)
    assert start(shares, A, 2) == "foreground", "it has asked for no more than its part"

    clock.now = 1.1
    assert start(shares, C, 5) == "foreground"


def test_who_is_refused_beside_a_flood_does_not_give_way(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A, 1.2 * HALF)
    shares.ask(C, ALL)
    shares.ask(A, 0.0, is_refused=True)

    assert [start(shares, flow, 5) for flow in (A, C)] == ["foreground", "background"]
    assert shares.is_modest(A)


def test_whoever_comes_for_the_first_time_has_a_share_like_the_others(shares: Shares) -> None:
    assert shares.share(B) == 1.0

    shares.ask(A, ALL)

    assert shares.share(B) == 0.75
    assert shares.is_modest(B)


def test_work_that_was_asked_for_fades(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A, ALL)
    shares.ask(B, ALL)
    assert start(shares, A, 5) == "background"

    clock.now = 60.0
    shares.ask(B, HALF)

    assert start(shares, A, 5) == "foreground"


def test_a_flow_that_runs_nothing_may_have_a_sentence_beyond_its_share(shares: Shares) -> None:
    shares.ask(A, ALL)
    shares.ask(B, ALL)

    assert start(shares, A, 16) == "background"
    assert start(shares, A, 1) == "nowhere"


def test_rows_that_are_left_may_be_taken_again(shares: Shares) -> None:
    shares.ask(A, ALL)
    shares.ask(B, ALL)
    sentence = new_sentence(beam_size=10, flow=A)
    shares.start([sentence])
    assert start(shares, A, 10) == "nowhere"

    shares.end([sentence])

    assert start(shares, A, 10) == "background"


def test_a_flow_that_has_been_quiet_leaves_its_share_to_the_others(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A, ALL)
    shares.ask(B, HALF)
    clock.now = 0.9
    shares.ask(A, ALL)
    assert shares.share(A) == 0.25

    clock.now = 1.1
    assert shares.share(A) == 1.0
    assert start(shares, A, 5) == "foreground"


def test_a_flow_whose_sentences_run_is_not_quiet(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A, ALL)
    shares.ask(B, HALF)
    start(shares, B, 1)
    clock.now = 100.0

    assert shares.share(A) == 0.25


def test_those_who_give_way_have_their_shares_together(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A, HALF / 4)
    assert shares.background_share() == 0.0

    shares.ask(B, ALL)
    shares.ask(C, ALL)
    clock.now = 0.03
    assert shares.background_share() == pytest.approx(0.08), "A asks for less than its part: they have what it leaves"

    shares.ask(A, 0.3 * HALF)
    clock.now = 0.06
    assert shares.background_share() == 0.8


def test_large_requests_give_way_while_small_ones_come_beside_them(shares: Shares, clock: FakeClock) -> None:
    shares.ask(A, 1.0, is_small=True)
    shares.ask(A, HALF)
    assert start(shares, A, 5, is_large=True) == "foreground", "the small one came before"

    shares.ask(A, 1.0, is_small=True)
    assert [start(shares, A, 5, is_large=is_large) for is_large in (False, True)] == ["foreground", "background"]

    clock.now = 5.1
    assert start(shares, A, 5, is_large=True) == "foreground"


def test_large_requests_have_a_quarter_of_their_flows_time(shares: Shares, clock: FakeClock) -> None:
    assert start(shares, A, 5, is_large=True) == "foreground"
    shares.ask(A, ALL, is_small=True)
    assert shares.background_share() == 0.0

    request = request_of(A, is_large=True)
    assert shares.allow(request, is_background=True)
    assert shares.background_share() == 0.25, "one waits"

    sentence = request.pop()
    shares.start([sentence], is_background=True)
    clock.now = 60.0
    assert shares.background_share() == 0.25, "one runs"

    shares.end([sentence])
    assert shares.background_share() == 0.0


def test_what_entered_the_background_has_its_time_when_its_flow_no_longer_gives_way(
    shares: Shares, clock: FakeClock
) -> None:
    shares.ask(A, HALF / 2)
    shares.ask(B, ALL)
    request = request_of(B)
    assert shares.allow(request, is_background=True)
    sentence = request.pop()
    shares.start([sentence], is_background=True)

    clock.now = 1.1
    shares.ask(B, ALL)
    assert start(shares, B, 5) == "foreground", "the other has gone"
    assert shares.background_share() == 1.0

    shares.end([sentence])
    assert shares.background_share() == 0.0


def test_nobody_gives_way_to_a_probe(shares: Shares) -> None:
    shares.start([new_sentence(flow=A)])
    shares.ask(B, ALL)

    assert (shares.share(B), shares.pace(B)) == (1.0, 1.0)
    assert start(shares, B, 5) == "foreground"


def test_a_flow_that_gives_way_has_no_more_for_its_large_requests(shares: Shares) -> None:
    shares.ask(A, HALF / 2, is_small=True)
    shares.ask(B, ALL)

    assert start(shares, B, 5, is_large=True) == "background"

    assert shares.background_share() == pytest.approx(0.075)


def test_whoever_gives_way_leaves_a_quarter_of_a_lane_to_others(shares: Shares, clock: FakeClock) -> None:
    limits = lane_limits(max_rows=40, max_cached_positions=1000)
    shares.ask(A, HALF / 2)
    shares.ask(B, ALL)

    part = shares.background_limits(limits)
    assert (part.max_rows, part.max_cached_positions) == (30, 750)
    assert part.max_encode_tokens == limits.max_encode_tokens / 4

    shares.ask(A, ALL)
    clock.now = 0.03
    assert shares.background_limits(limits) == limits, "there are no others"
