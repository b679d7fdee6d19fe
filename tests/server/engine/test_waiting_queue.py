"""The queue with integers only: no model, no threads but where a lane waits for work."""

import threading

import pytest

from server.engine.sentence import Sentence
from server.engine.waiting_queue import WaitingQueue
from server.errors import NotServing, Overloaded
from server.network import StepKind
from tests.fakes import lane_limits
from tests.server.engine.parts import new_queue, new_sentence

PLAIN, SHORTLIST = StepKind.PLAIN, StepKind.SHORTLIST


def add_mixed(queue: WaitingQueue, num_sentences: int) -> None:
    """Adds requests of one sentence, every other one with a shortlist."""
    for i in range(num_sentences):
        queue.add([new_sentence(use_shortlist=i % 2 == 1)])


def test_requests_take_turns() -> None:
    queue = new_queue()
    large, small = [new_sentence() for _ in range(3)], [new_sentence() for _ in range(2)]
    queue.add(large)
    queue.add(small)

    taken = queue.take(PLAIN, lane_limits())

    assert taken == [large[0], small[0], large[1], small[1], large[2]]


def test_requests_take_turns_from_one_lane_to_the_next() -> None:
    queue = new_queue()
    large, small = [new_sentence() for _ in range(3)], [new_sentence() for _ in range(2)]
    queue.add(large)
    queue.add(small)

    taken = [queue.take(PLAIN, lane_limits(max_rows=1)) for _ in range(5)]

    assert taken == [[large[0]], [small[0]], [large[1]], [small[1]], [large[2]]]


def test_queue_refuses_at_its_limit_of_sentences_and_names_it() -> None:
    queue = new_queue(max_sentences=2)
    queue.add([new_sentence()])
    queue.add([new_sentence()])

    with pytest.raises(Overloaded, match="2 sentences wait, limit 2") as refusal:
        queue.add([new_sentence()])

    assert refusal.value.reason == "sentences"
    assert queue.num_sentences == 2


def test_queue_refuses_at_its_limit_of_tokens_and_names_it() -> None:
    queue = new_queue(max_tokens=10)
    queue.add([new_sentence(tokens=5)])
    queue.add([new_sentence(tokens=5)])

    with pytest.raises(Overloaded, match="10 source tokens wait, limit 10") as refusal:
        queue.add([new_sentence()])

    assert refusal.value.reason == "tokens"


def test_large_request_leaves_room_for_others() -> None:
    queue = new_queue(max_sentences=10, max_tokens=100)
    queue.add([new_sentence(tokens=50) for _ in range(500)])

    queue.check_room()
    queue.add([new_sentence() for _ in range(4)])
    queue.check_room()
    queue.add([new_sentence() for _ in range(500)])
    with pytest.raises(Overloaded, match=r"1004 sentences wait, limit 10"):
        queue.check_room()

    for _ in range(200):
        assert queue.take(PLAIN, lane_limits(max_rows=5))
    queue.check_room()
    assert queue.num_sentences < 10


def test_request_larger_than_the_limits_is_taken_by_an_empty_queue() -> None:
    queue = new_queue(max_sentences=2, max_tokens=10)

    queue.add([new_sentence(tokens=10) for _ in range(5)])

    assert queue.num_sentences == 5


def test_a_request_without_sentences_does_not_wait() -> None:
    queue = new_queue()

    queue.add([])

    assert not queue.has_waiting(PLAIN)
    assert queue.take(PLAIN, lane_limits()) == []


def test_closed_queue_returns_what_waits_and_refuses_more() -> None:
    queue = new_queue()
    waiting = new_sentence()
    queue.add([waiting])

    assert queue.close() == [waiting]
    assert (queue.num_sentences, queue.num_tokens) == (0, 0)
    with pytest.raises(NotServing):
        queue.add([new_sentence()])
    assert not queue.wait()


def test_closed_queue_returns_all_kinds_once() -> None:
    queue = new_queue()
    waiting = [new_sentence(), new_sentence(use_shortlist=True)]
    for sentence in waiting:
        queue.add([sentence])

    assert queue.close() == waiting
    assert queue.close() == []
    assert not any(queue.has_waiting(kind) for kind in StepKind)


def test_idle_lane_wakes_when_work_arrives() -> None:
    queue = new_queue()
    woken: list[bool] = []
    lane = threading.Thread(target=lambda: woken.append(queue.wait()))
    lane.start()

    queue.add([new_sentence()])
    lane.join(timeout=10)

    assert woken == [True]


def test_idle_lane_wakes_when_the_queue_is_closed() -> None:
    queue = new_queue()
    woken: list[bool] = []
    lane = threading.Thread(target=lambda: woken.append(queue.wait()))
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
            queue.release(len(taken))

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

    queue.take(PLAIN, lane_limits(max_rows=4))
    assert not queue.is_all(4)

    queue.release(4)
    assert queue.is_all(4)


def test_what_is_over_leaves_wherever_its_request_stands() -> None:
    queue = new_queue()
    left, expired, wanted = new_sentence(), new_sentence(deadline=1.0), new_sentence(deadline=2.0)
    for sentence in (left, wanted, expired):
        queue.add([sentence])
    left.future.cancel()

    assert queue.drop_over(1.0) == [left, expired]
    assert (queue.num_sentences, queue.num_tokens) == (1, 5)
    assert queue.take(PLAIN, lane_limits()) == [wanted]


def test_many_waiting_requests_are_not_all_looked_at_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = new_queue(max_sentences=100_000, max_tokens=1_000_000)
    for _ in range(10_000):
        queue.add([new_sentence()])
    looks = 0
    is_over = Sentence.is_over

    def counting(sentence: Sentence, now: float) -> bool:
        nonlocal looks
        looks += 1
        return is_over(sentence, now)

    monkeypatch.setattr(Sentence, "is_over", counting)
    for _ in range(1000):
        queue.drop_over(0.0)

    assert 10_000 <= looks <= 1000 * 32
