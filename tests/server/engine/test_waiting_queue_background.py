"""Who gives way to whom, as lanes take sentences from the queue."""

import threading
from functools import reduce
from operator import add

import pytest

from server.engine.flow import Flow
from server.errors import Overloaded
from server.network import StepKind
from tests.fakes import FakeClock, lane_limits
from tests.server.engine.parts import LITTLE, new_queue, new_sentence, slow_cost

PLAIN = StepKind.PLAIN


def test_a_flow_that_asks_for_more_than_another_leaves_rows_and_steps_to_it() -> None:
    cost = slow_cost()  # so slow that a hundred sentences are more than all there is
    queue, limits = new_queue(max_rows=20, cost=cost), lane_limits(max_rows=20)
    modest, flood = Flow(name="modest"), Flow(name="flood")
    queue.add([new_sentence(flow=modest) for _ in range(2)])
    queue.add([new_sentence(flow=flood) for _ in range(100)])

    assert [sentence.flow for sentence in queue.take(PLAIN, limits)] == [modest, modest]
    assert not queue.has_next(PLAIN)
    assert queue.has_next(PLAIN, is_background=True)
    assert [sentence.flow for sentence in queue.take(PLAIN, limits, is_background=True)] == [flood] * 10
    assert not queue.has_next(PLAIN, is_background=True), "it has its half of the rows"


def test_what_is_refused_has_been_asked_for_all_the_same() -> None:
    cost = slow_cost()
    clock = FakeClock()
    queue = new_queue(max_rows=20, cost=cost, clock=clock)
    modest, flood = Flow(name="modest"), Flow(name="flood")
    queue.add([new_sentence(flow=modest)])
    queue.add([new_sentence(flow=flood)])
    queue.take(PLAIN, lane_limits())
    for _ in range(100):
        with pytest.raises(Overloaded):
            queue.check_room(LITTLE, 0.5, flood)
    clock.now = 0.1

    queue.add([new_sentence(flow=flood)])

    assert queue.has_next(PLAIN, is_background=True)


def test_a_sleeping_lane_wakes_when_another_lets_rows_go() -> None:
    cost = slow_cost()
    queue, limits = new_queue(max_rows=20, cost=cost), lane_limits(max_rows=20)
    queue.add([new_sentence(flow=Flow(name="modest"))])
    queue.take(PLAIN, limits)
    queue.add([new_sentence(flow=Flow(name="flood")) for _ in range(100)])
    running = queue.take(PLAIN, limits, is_background=True)
    woken: list[bool] = []
    lane = threading.Thread(
        target=lambda: woken.append(queue.wait(lambda: queue.has_next(PLAIN, is_background=True), 10.0))
    )
    lane.start()

    queue.end(running[:1])
    lane.join(timeout=10)

    assert woken == [True]


def test_a_large_request_leaves_rows_and_steps_to_small_ones() -> None:
    cost = slow_cost()  # a burst has five sentences
    queue, limits = new_queue(max_rows=20, cost=cost), lane_limits(max_rows=20)
    large, small = [new_sentence() for _ in range(100)], [new_sentence() for _ in range(2)]
    queue.add(large)
    taken = queue.take(PLAIN, lane_limits(max_rows=6))
    assert taken == large[:6], "there are no small ones"
    queue.add(small[:1])

    footprint = reduce(add, (sentence.footprint for sentence in taken))
    taken += queue.take(PLAIN, limits, footprint)
    assert taken == [*large[:6], small[0]]
    assert not queue.has_next(PLAIN)
    assert queue.has_next(PLAIN, is_background=True)
    footprint = reduce(add, (sentence.footprint for sentence in taken))
    assert queue.take(PLAIN, limits, footprint, is_background=True) == large[6:14], "of 20 rows all but a quarter"

    queue.add(small[1:])
    assert queue.take(PLAIN, limits) == small[1:]


def test_small_sentences_of_one_kind_do_not_wait_for_large_ones_of_another() -> None:
    cost = slow_cost()
    queue, limits = new_queue(max_rows=20, cost=cost), lane_limits(max_rows=20)
    queue.add([new_sentence() for _ in range(100)])
    queue.take(PLAIN, lane_limits(max_rows=6))
    for _ in range(40):
        queue.add([new_sentence(use_shortlist=True)])

    assert len(queue.take(StepKind.SHORTLIST, limits)) == 20
    assert len(queue.take(StepKind.SHORTLIST, limits)) == 20, "the large one is for the background"


def test_a_large_request_alone_is_not_parted() -> None:
    cost = slow_cost()
    queue, limits = new_queue(max_rows=20, cost=cost), lane_limits(max_rows=20)
    queue.add([new_sentence() for _ in range(100)])

    assert len(queue.take(PLAIN, limits)) == 20
    assert not queue.has_next(PLAIN, is_background=True)
