"""The order within a flow, with integers only."""

from collections import deque

import pytest

from server.engine import flow_queue
from server.engine.flow import ANYONE, Flow
from server.engine.flow_queue import FlowQueue, WaitingRequest
from server.engine.sentence import Sentence
from tests.server.engine.parts import new_sentence


class Queue(FlowQueue):
    """Numbers its requests; each sentence is one row-step."""

    def __init__(self) -> None:
        super().__init__(ANYONE)
        self.number = 0

    def arrive(self, count: int = 1, due: float = 0.0, *, burst: float = 1000.0, rank: int = 0) -> list[Sentence]:
        sentences = [new_sentence(flow=Flow(rank=rank)) for _ in range(count)]
        self.number += 1
        self.add(WaitingRequest(deque(sentences), float(count), burst, (rank, due, self.number)))
        return sentences

    def drain(self) -> list[Sentence]:
        return [self.pop(self.next()) for _ in iter(lambda: len(self), 0)]


@pytest.fixture
def queue() -> Queue:
    return Queue()


def test_what_is_due_first_goes_first(queue: Queue) -> None:
    patient, urgent, between = queue.arrive(2, due=9.0), queue.arrive(2, due=1.0), queue.arrive(1, due=5.0)

    assert queue.drain() == [*urgent, *between, *patient]


def test_equals_go_in_order_of_arrival(queue: Queue) -> None:
    first, second = queue.arrive(2), queue.arrive(2)

    assert queue.drain() == [*first, *second]


def test_a_lower_rank_goes_before_whatever_is_due(queue: Queue) -> None:
    second, first = queue.arrive(due=0.0, rank=1), queue.arrive(due=9.0, rank=0)

    assert queue.drain() == [*first, *second]


def test_what_is_beyond_a_burst_takes_turns(queue: Queue) -> None:
    one, other = queue.arrive(4, burst=1.0), queue.arrive(4, burst=1.0)

    assert queue.drain() == [one[0], other[0], one[1], other[1], one[2], other[2], one[3], other[3]]


def test_large_requests_have_a_quarter_while_small_ones_wait(queue: Queue) -> None:
    large = queue.arrive(100, burst=1.0)
    queue.pop(queue.next())
    small = [queue.arrive()[0] for _ in range(60)]

    served = [queue.pop(queue.next()) for _ in range(80)]

    assert [sentence for sentence in served if sentence in small] == small
    assert sum(sentence in large for sentence in served) == 20
    assert served[0] is small[0], "a newcomer waits for nobody"


def test_large_requests_have_no_share_of_a_lower_ranks_work(queue: Queue) -> None:
    urgent, bulk = queue.arrive(5, burst=1.0, rank=0), queue.arrive(5, rank=1)
    assert queue.drain() == [*urgent, *bulk]

    bulk, urgent = queue.arrive(5, burst=1.0, rank=1), []
    queue.pop(queue.next())
    urgent = queue.arrive(5, rank=0)
    assert queue.drain() == [*urgent, *bulk[1:]]


def test_large_requests_keep_no_claim_from_times_without_any(queue: Queue) -> None:
    for _ in range(50):
        queue.arrive()
    queue.drain()
    large, small = queue.arrive(3, burst=1.0), queue.arrive(3, due=1.0)

    assert queue.drain()[:2] == [large[0], small[0]]


def test_work_is_what_waits(queue: Queue) -> None:
    queue.arrive(3)
    queue.arrive(2, burst=1.0)
    assert queue.work == 5

    queue.pop(queue.next())
    assert queue.work == 4
    queue.remove(queue.next())
    assert (queue.work, len(queue)) == (2, 1)
    queue.drain()
    assert (queue.work, len(queue), list(queue)) == (0, 0, [])


def test_work_before_a_request_is_of_those_that_go_before_it(queue: Queue) -> None:
    queue.arrive(30, due=1.0)
    queue.arrive(20, due=5.0)

    assert queue.work_before(0, 0.0, is_large=False) == 0
    assert queue.work_before(0, 2.0, is_large=False) == 30
    assert queue.work_before(0, 6.0, is_large=False) == 50
    assert queue.work_before(1, 0.0, is_large=False) == 50
    assert queue.work_before(0, 0.0, is_large=True) == 50


def test_work_before_a_small_request_holds_the_share_of_large_ones(queue: Queue) -> None:
    queue.arrive(101, burst=1.0)
    queue.pop(queue.next())
    queue.arrive(30)

    assert queue.work_before(0, 1.0, is_large=False) == pytest.approx(40)


def test_the_end_of_a_request_counts_all_of_it_until_it_has_begun() -> None:
    sentences = deque(new_sentence() for _ in range(5))
    for sentence in sentences:
        sentence.steps = 10.0
    request = WaitingRequest(sentences, 50.0, 1000.0, (0, 0.0, 0))

    assert request.end(1.0, step_seconds=0.1, work_seconds=0.01) == pytest.approx(1.0 + 0.5 + 1.0)
    request.pop()
    assert request.end(1.0, step_seconds=0.1, work_seconds=0.01) == pytest.approx(2.0)


def test_of_what_will_be_large_its_burst_alone_goes_before_a_small_one(queue: Queue) -> None:
    queue.arrive(101, burst=3.0)
    assert queue.work_before(0, 1.0, is_large=False) == pytest.approx(3 + 1)

    queue.pop(queue.next())

    assert queue.work_before(0, 1.0, is_large=False) == pytest.approx(2 + 2 / 3)
    assert queue.work_before(0, 1.0, is_large=True) == 100


def test_work_before_a_request_may_be_asked_while_a_lane_takes_some(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(8):
        queue.arrive()

    def key_while_a_lane_takes_the_rest(request: WaitingRequest) -> tuple[int, float, float]:
        queue.drain()
        return request.key

    monkeypatch.setattr(flow_queue, "_key", key_while_a_lane_takes_the_rest)

    assert queue.work_before(0, due=1.0, is_large=False) in range(9)
