"""Which sentences lanes take, with integers only: no model, no threads."""

import math

import pytest

from server.averages import SUM_SECONDS
from server.engine.flow import Flow
from server.engine.limits import Footprint
from server.errors import Overloaded
from server.network import StepKind
from tests.fakes import FakeClock, lane_limits
from tests.server.engine.parts import (
    FLOOD,
    LITTLE,
    NEIGHBOUR,
    add_singles,
    flooded,
    footprint_of,
    new_dispatch,
    new_sentence,
    slow_cost,
    take,
)


def test_sentences_are_taken_in_order_of_arrival() -> None:
    dispatch = new_dispatch()
    sentences = [new_sentence() for _ in range(3)]
    dispatch.add(sentences)
    assert (dispatch.waiting.num_sentences, dispatch.waiting.num_tokens) == (3, 15)

    assert take(dispatch) == sentences
    assert (dispatch.waiting.num_sentences, dispatch.waiting.num_tokens) == (0, 0)


def test_small_request_goes_before_the_rest_of_a_large_one() -> None:
    dispatch = new_dispatch()
    large, small = [new_sentence() for _ in range(3)], [new_sentence()]
    dispatch.add(large)
    assert take(dispatch, lane_limits(max_rows=1)) == [large[0]]
    dispatch.add(small)

    assert take(dispatch) == [small[0], large[1], large[2]]


def test_both_kinds_are_taken_as_they_come() -> None:
    dispatch = new_dispatch()
    for i in range(6):
        dispatch.add([new_sentence(use_shortlist=i % 2 == 1)])

    assert [sentence.kind for sentence in take(dispatch)] == [*StepKind] * 3


def test_within_a_flow_the_lower_rank_goes_first() -> None:
    dispatch = new_dispatch()
    low, high = (new_sentence(flow=Flow(name="a", rank=rank)) for rank in (1, 0))
    dispatch.add([low])
    dispatch.add([high])

    assert take(dispatch) == [high, low]


def test_no_more_are_taken_than_there_are_rows() -> None:
    dispatch = new_dispatch()
    sentences = [new_sentence(beam_size=4) for _ in range(3)]
    dispatch.add(sentences)

    assert dispatch.take(lane_limits(8), Footprint(), 0, is_background=False) == (sentences[:2], True)
    assert take(dispatch, lane_limits(8), sentences[:2]) == []
    assert dispatch.take(lane_limits(8), footprint_of(sentences[:1]), 0, is_background=False) == (sentences[2:], False)


def test_no_more_are_taken_than_may_be_encoded_at_once() -> None:
    dispatch = new_dispatch()
    dispatch.add([new_sentence(tokens=10), new_sentence(tokens=20), new_sentence(tokens=1)])

    # 2 x 20 padded tokens fit into 40; a third sentence would make it 3 x 20.
    taken, is_full = dispatch.take(lane_limits(max_encode_tokens=40), Footprint(), 0, is_background=False)
    assert [len(sentence.source_ids) for sentence in taken] == [10, 20]
    assert is_full


def test_sentence_longer_than_may_be_encoded_at_once_is_encoded_alone() -> None:
    dispatch = new_dispatch()
    long = new_sentence(tokens=100)
    dispatch.add([long, new_sentence()])

    assert take(dispatch, lane_limits(max_encode_tokens=40)) == [long]


def test_fewer_long_sentences_are_taken() -> None:
    dispatch, limits = new_dispatch(), lane_limits(64, max_cached_positions=75)
    short, long, wide, last = sentences = [
        new_sentence(tokens=10),
        new_sentence(tokens=20),
        new_sentence(tokens=5, beam_size=2),
        new_sentence(tokens=5),
    ]
    dispatch.add(sentences)

    assert take(dispatch, limits) == [short, long, wide]  # 2 x 30 positions, and 3 x 5 of a beam of 2
    assert take(dispatch, limits, [short, long, wide]) == []
    assert take(dispatch, limits, [long, wide]) == [last]


def test_fewer_are_taken_beside_one_long_sentence() -> None:
    dispatch, limits = new_dispatch(), lane_limits(64, max_cached_positions=750)
    long, *short = sentences = [new_sentence(tokens=100), *(new_sentence(tokens=10) for _ in range(9))]
    dispatch.add(sentences)

    assert take(dispatch, limits) == [long, *short[:6]]  # 7 x 2 rows of 100 positions, 320 of them counted
    assert take(dispatch, limits, short[:6], longest=10) == short[6:]


def test_a_row_that_has_become_long_counts_as_it_is() -> None:
    dispatch, limits = new_dispatch(), lane_limits(64, max_cached_positions=200)
    running, newcomer = new_sentence(tokens=10), new_sentence(tokens=10)
    dispatch.add([newcomer])
    dispatch.count([running], +1)

    assert take(dispatch, limits, [running], longest=101) == []
    assert take(dispatch, limits, [running], longest=100) == [newcomer]


def test_a_sentence_beyond_all_limits_is_taken_alone() -> None:
    dispatch = new_dispatch()
    long = new_sentence(tokens=100, beam_size=4)
    dispatch.add([long, new_sentence()])

    assert take(dispatch, lane_limits(2, max_cached_positions=120)) == [long]


def test_wide_beam_at_the_head_is_not_overtaken() -> None:
    dispatch = new_dispatch()
    sentences = [new_sentence(beam_size=2), new_sentence(beam_size=4), new_sentence(beam_size=1)]
    dispatch.add(sentences)

    assert take(dispatch, lane_limits(max_rows=4)) == sentences[:1]
    assert take(dispatch, lane_limits(max_rows=4), sentences[:1]) == []


def test_lanes_share_a_burst_evenly() -> None:
    dispatch = new_dispatch(num_lanes=2)
    add_singles(dispatch, 20)

    taken = [dispatch.take(lane_limits(32), Footprint(), 0, is_background=False) for _ in range(2)]
    assert [(len(sentences), is_full) for sentences, is_full in taken] == [(10, False), (10, False)]


def test_lane_with_its_part_of_the_rows_leaves_the_next_sentence_to_the_other() -> None:
    dispatch = new_dispatch(num_lanes=2)
    dispatch.add([new_sentence(beam_size=4)])
    running = take(dispatch)
    dispatch.add([new_sentence(beam_size=4)])

    assert dispatch.take(lane_limits(), footprint_of(running), 0, is_background=False) == ([], False)
    assert len(take(dispatch)) == 1


def test_a_flow_that_asks_for_more_than_its_share_is_in_the_background() -> None:
    dispatch, neighbours, flood = flooded()

    assert dispatch._queue.background
    assert take(dispatch) == neighbours
    assert take(dispatch) == []
    assert take(dispatch, lane_limits(max_rows=10), is_background=True) == flood[:10]


def test_a_flow_alone_is_not_in_the_background() -> None:
    dispatch = new_dispatch(max_rows=20, cost=slow_cost())
    large = [new_sentence() for _ in range(100)]
    dispatch.add(large)

    assert not dispatch._queue.background
    assert take(dispatch, is_background=True) == []
    assert take(dispatch) == large


def test_a_large_request_leaves_rows_and_steps_to_small_ones_of_the_same_tenant() -> None:
    dispatch = new_dispatch(max_rows=20, cost=slow_cost())
    large, small = [new_sentence() for _ in range(100)], [new_sentence() for _ in range(2)]
    dispatch.add(large)
    assert take(dispatch, lane_limits(max_rows=6)) == large[:6], "there are no small ones"

    for sentence in small:
        dispatch.add([sentence])
        assert take(dispatch) == [sentence]
    assert take(dispatch, lane_limits(max_rows=10), is_background=True) == large[6:16]


def test_a_flow_without_sentences_stays_in_the_background_while_it_wants_more_than_others() -> None:
    clock = FakeClock()
    dispatch, neighbours, flood = flooded(clock)
    taken = [*take(dispatch), *take(dispatch, is_background=True)]
    assert taken == neighbours + flood
    dispatch.count(flood, -1)
    dispatch.add([stays := new_sentence(flow=FLOOD.of_long())])
    assert take(dispatch, is_background=True) == [stays]

    clock.now += 20 * SUM_SECONDS
    dispatch.add([new_sentence(flow=NEIGHBOUR) for _ in range(4)])  # of three times the weight
    dispatch.add([wanted := new_sentence(flow=FLOOD.of_long())])

    assert not dispatch._queue.background
    assert wanted in take(dispatch)


def test_flows_stay_in_the_background_however_long_their_sentences_wait() -> None:
    clock = FakeClock()
    dispatch, _, _ = flooded(clock)
    dispatch.add([new_sentence(flow=FLOOD.of_bulk())])
    clock.now += 2.0
    dispatch.add([new_sentence(flow=NEIGHBOUR)])

    assert set(dispatch._queue.background) == {FLOOD.of_long(), FLOOD.of_bulk()}


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_bulk_call_leaves_the_background_a_second_after_its_last_sentence(is_taken: bool) -> None:
    clock = FakeClock()
    dispatch = new_dispatch(clock=clock)
    dispatch.add([bulk := new_sentence(flow=FLOOD.of_bulk(), deadline=1.0)])
    if is_taken:
        dispatch.count(take(dispatch, is_background=True), -1)
    else:
        clock.now = 1.0
        assert dispatch.drop_over() == [bulk]
    clock.now += 2.0
    dispatch.add([new_sentence(flow=NEIGHBOUR)])

    assert not dispatch._queue.background


def test_an_engine_where_sentences_wait_is_not_idle_however_long_they_do() -> None:
    clock, cost = FakeClock(), slow_cost()
    dispatch = new_dispatch(cost=cost, clock=clock)
    dispatch.add([new_sentence()])
    clock.now = 60.0

    with pytest.raises(Overloaded):
        dispatch.check(LITTLE, clock.now + cost.alone_seconds(LITTLE) / 2, NEIGHBOUR)


def test_a_background_that_has_no_time_is_told_that_its_answers_take_longer() -> None:
    dispatch, _, _ = flooded()
    seconds = [dispatch.check(LITTLE, math.inf, flow).seconds for flow in (FLOOD.of_long(), NEIGHBOUR)]
    dispatch.note_seconds(1.0, is_background=False)
    dispatch.note_seconds(0.05, is_background=True)
    starved = [dispatch.check(LITTLE, math.inf, flow).seconds for flow in (FLOOD.of_long(), NEIGHBOUR)]

    # At first it is taken to have had a quarter of a second.
    assert starved == pytest.approx([seconds[0] * (1.0 + 0.05 + 0.25) / (0.05 + 0.25), seconds[1]])
