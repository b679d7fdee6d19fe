"""Who is next, and who is dropped, with integers only: no model, no threads but where a lane waits for work."""

import threading

import pytest

from server.engine.cost import CostModel
from server.engine.flow_queue import WaitingRequest
from server.engine.waiting_queue import WaitingQueue
from server.errors import NotServing
from server.network import StepKind
from tests.fakes import lane_limits
from tests.server.engine.parts import new_queue, new_sentence, slow_cost

PLAIN, SHORTLIST = StepKind.PLAIN, StepKind.SHORTLIST


def add_mixed(queue: WaitingQueue, num_sentences: int) -> None:
    """Adds requests of one sentence, every other one with a shortlist."""
    for i in range(num_sentences):
        queue.add([new_sentence(use_shortlist=i % 2 == 1)])


def test_small_request_goes_before_the_rest_of_a_large_one() -> None:
    queue = new_queue()
    large, small = [new_sentence() for _ in range(3)], [new_sentence()]
    queue.add(large)
    assert queue.take(PLAIN, lane_limits(max_rows=1)) == [large[0]]
    queue.add(small)

    assert queue.take(PLAIN, lane_limits()) == [small[0], large[1], large[2]]


def test_a_request_without_sentences_does_not_wait() -> None:
    queue = new_queue()

    queue.add([])

    assert not queue.has_next(PLAIN)
    assert queue.take(PLAIN, lane_limits()) == []


def test_closed_queue_returns_what_waits_and_refuses_more() -> None:
    queue = new_queue()
    waiting = new_sentence()
    queue.add([waiting])

    assert queue.close() == [waiting]
    assert (queue.charges.num_sentences, queue.charges.num_tokens) == (0, 0)
    with pytest.raises(NotServing):
        queue.add([new_sentence()])
    assert not queue.wait(lambda: bool(queue.charges.num_sentences))


def test_closed_queue_returns_all_kinds_once() -> None:
    queue = new_queue()
    waiting = [new_sentence(), new_sentence(use_shortlist=True)]
    for sentence in waiting:
        queue.add([sentence])

    assert queue.close() == waiting
    assert queue.close() == []
    assert not any(queue.has_next(kind) for kind in StepKind)


def test_idle_lane_wakes_when_work_arrives() -> None:
    queue = new_queue()
    woken: list[bool] = []
    lane = threading.Thread(target=lambda: woken.append(queue.wait(lambda: bool(queue.charges.num_sentences))))
    lane.start()

    queue.add([new_sentence()])
    lane.join(timeout=10)

    assert woken == [True]


def test_idle_lane_wakes_when_the_queue_is_closed() -> None:
    queue = new_queue()
    woken: list[bool] = []
    lane = threading.Thread(target=lambda: woken.append(queue.wait(lambda: bool(queue.charges.num_sentences))))
    lane.start()

    queue.close()
    lane.join(timeout=10)

    assert woken == [False]


def test_lanes_share_a_burst_evenly() -> None:
    queue = new_queue(num_lanes=2)
    queue.add([new_sentence() for _ in range(20)])

    assert [len(queue.take(PLAIN, lane_limits(max_rows=32))) for _ in range(2)] == [10, 10]


def test_lane_with_its_fair_share_leaves_the_next_sentence_to_the_other() -> None:
    queue = new_queue(num_lanes=2)
    queue.add([new_sentence(beam_size=4)])
    (running,) = queue.take(PLAIN, lane_limits())
    queue.add([new_sentence(beam_size=4)])

    assert queue.take(PLAIN, lane_limits(), running.footprint) == []
    assert len(queue.take(PLAIN, lane_limits())) == 1


def test_a_batch_takes_sentences_of_its_own_kind() -> None:
    queue = new_queue()
    add_mixed(queue, 6)

    for kind in StepKind:
        assert [sentence.kind for sentence in queue.take(kind, lane_limits())] == [kind] * 3


def test_a_kind_that_has_seen_enough_of_others_pass_comes_next() -> None:
    queue, limits = new_queue(), lane_limits(max_rows=64)
    add_mixed(queue, 60)

    turns = []
    for _ in range(4):
        for kind in StepKind:
            taken = queue.take(kind, limits)
            assert queue.take(kind, limits) == []
            turns.append(len(taken))
            queue.end(taken)

    assert turns == [16, 16, 14, 14, 0, 0, 0, 0]


def test_a_kind_goes_on_while_nobody_of_another_waits() -> None:
    queue, limits = new_queue(), lane_limits(max_rows=64)
    queue.add([new_sentence(use_shortlist=True) for _ in range(40)])

    assert len(queue.take(SHORTLIST, limits)) == 40
    queue.add([new_sentence()])
    queue.add([new_sentence(use_shortlist=True)])
    assert len(queue.take(SHORTLIST, limits)) == 1
    assert len(queue.take(PLAIN, limits)) == 1


def test_rows_are_all_when_nothing_waits_and_no_other_lane_runs() -> None:
    queue = new_queue(num_lanes=2)
    queue.add([new_sentence(beam_size=4)])
    queue.take(PLAIN, lane_limits(max_rows=4))
    assert queue.is_all(4)

    queue.add([new_sentence(beam_size=4)])
    assert not queue.is_all(4)  # whoever takes it, soon there are two

    taken = queue.take(PLAIN, lane_limits(max_rows=4))
    assert not queue.is_all(4)

    queue.end(taken)
    assert queue.is_all(4)


def test_an_engine_asks_for_the_time_of_all_that_it_runs_and_that_waits() -> None:
    queue = new_queue(cost=slow_cost())  # 20 rows take a second
    seen = [queue.asked_seconds]
    queue.add([new_sentence(beam_size=4) for _ in range(5)])
    seen.append(queue.asked_seconds)
    taken = queue.take(PLAIN, lane_limits(max_rows=8))
    seen.append(queue.asked_seconds)
    queue.end(taken)
    seen.append(queue.asked_seconds)

    assert seen == pytest.approx([0.0, 1.0, 1.0, 0.6])


def test_what_is_over_leaves_wherever_its_request_stands() -> None:
    queue = new_queue()
    left, expired, wanted = new_sentence(), new_sentence(deadline=1.0), new_sentence(deadline=2.0)
    for sentence in (left, wanted, expired):
        queue.add([sentence])
    left.future.cancel()

    assert set(queue.drop_over(1.0)) == {left, expired}
    assert (queue.charges.num_sentences, queue.charges.num_tokens) == (1, 5)
    assert queue.take(PLAIN, lane_limits()) == [wanted]


def test_many_waiting_requests_are_not_all_looked_at_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = new_queue(max_sentences=100_000, max_tokens=1_000_000)
    for _ in range(10_000):
        queue.add([new_sentence()])
    looks = 0
    end = WaitingRequest.end

    def counting(request: WaitingRequest, now: float, step_seconds: float, work_seconds: float) -> float:
        nonlocal looks
        looks += 1
        return end(request, now, step_seconds, work_seconds)

    monkeypatch.setattr(WaitingRequest, "end", counting)
    for _ in range(1000):
        queue.drop_over(0.0)

    assert 10_000 <= looks <= 1000 * 32


def test_a_request_that_can_no_longer_be_in_time_is_dropped_whole() -> None:
    queue = new_queue()
    late, wanted = [new_sentence(deadline=1.0) for _ in range(3)], [new_sentence(deadline=2.0)]
    queue.add([new_sentence()])
    running = queue.take(PLAIN, lane_limits())
    queue.add(late)
    queue.add(wanted)

    assert queue.drop_over(0.9) == []
    assert set(queue.drop_over(0.999)) == set(late)
    assert queue.take(PLAIN, lane_limits(), running[0].footprint) == wanted


def test_an_idle_engine_tries_what_the_door_let_in() -> None:
    queue = new_queue()
    queue.add([new_sentence(deadline=1.0)])

    assert queue.drop_over(0.999) == []
    assert len(queue.drop_over(1.001)) == 1


def test_a_lane_takes_no_more_than_lets_its_sentences_be_in_time() -> None:
    cost = CostModel(64)
    for rows in (4, 60):
        cost.observe_step(rows, 0.001 * rows, busy_rows=0)
    queue = new_queue(cost=cost)
    queue.add([new_sentence() for _ in range(40)])

    assert len(queue.take(PLAIN, lane_limits(max_rows=64), most_step_seconds=0.010)) == 10
    assert len(queue.take(PLAIN, lane_limits(max_rows=64))) == 30


def test_lanes_are_short_of_room_when_more_waits_than_they_share() -> None:
    queue = new_queue(num_lanes=2)
    assert not queue.is_short_of_room(0)
    queue.add([new_sentence() for _ in range(20)])

    assert len(queue.take(PLAIN, lane_limits(max_rows=8))) == 8
    assert queue.is_short_of_room(8)
    assert not queue.is_short_of_room(10), "the other lane takes the rest"


def test_who_comes_after_the_last_take_does_not_lack_room() -> None:
    queue = new_queue()
    queue.add([new_sentence()])
    taken = queue.take(PLAIN, lane_limits(max_rows=8))

    queue.add([new_sentence()])

    assert not queue.is_short_of_room(len(taken))
