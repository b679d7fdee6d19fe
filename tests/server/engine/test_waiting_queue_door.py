"""Whom the queue refuses at the door, with integers only."""

import pytest

from server.engine.cost import CostModel, Demand
from server.engine.flow import ANYONE, Flow
from server.engine.waiting_queue import WaitingQueue
from server.errors import DeadlineExceeded, Overloaded
from server.network import StepKind
from tests.fakes import FakeClock, lane_limits
from tests.server.engine.parts import LITTLE, new_queue, new_sentence, slow_cost

PLAIN = StepKind.PLAIN


def add_singles(queue: WaitingQueue, count: int, flow: Flow = ANYONE) -> None:
    """Adds requests of one sentence."""
    for _ in range(count):
        queue.add([new_sentence(flow=flow)])


def test_queue_refuses_at_its_limit_of_sentences_and_names_it() -> None:
    queue = new_queue(max_sentences=2)
    queue.add([new_sentence()])
    queue.add([new_sentence()])

    with pytest.raises(Overloaded, match="2 sentences wait, limit 2") as refusal:
        queue.add([new_sentence()])

    assert refusal.value.reason == "sentences"
    assert queue.charges.num_sentences == 2


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

    queue.check_room(LITTLE)
    queue.add([new_sentence() for _ in range(4)])
    queue.check_room(LITTLE)
    queue.add([new_sentence() for _ in range(500)])
    with pytest.raises(Overloaded, match=r"1004 sentences wait, limit 10"):
        queue.check_room(LITTLE)

    for _ in range(200):
        assert queue.take(PLAIN, lane_limits(max_rows=5))
    queue.check_room(LITTLE)
    assert queue.charges.num_sentences < 10


def test_request_larger_than_the_limits_is_taken_by_an_empty_queue() -> None:
    queue = new_queue(max_sentences=2, max_tokens=10)

    queue.add([new_sentence(tokens=10) for _ in range(5)])

    assert queue.charges.num_sentences == 5


def test_a_request_that_would_be_late_is_refused_and_told_when_to_come_back() -> None:
    cost = CostModel(64)
    queue = new_queue(max_sentences=10_000, max_tokens=10**6, cost=cost)
    add_singles(queue, 2000)
    work = 2000 * cost.row_step_seconds

    queue.check_room(LITTLE, deadline=2 * work)
    with pytest.raises(Overloaded, match=r"would take about 0\.4\d? s, 0\.3 s are left") as refusal:
        queue.check_room(Demand(work=400.0, steps=1.0, rows=1), deadline=0.8 * work)

    assert refusal.value.reason == "deadline"
    assert refusal.value.retry_after_seconds == pytest.approx(0.4 * work, rel=0.1)


def test_an_idle_engine_tries_what_may_be_late_but_nothing_hopeless() -> None:
    cost = CostModel(64)
    queue = new_queue(cost=cost)
    demand = Demand(work=10_000.0, steps=1.0, rows=1)
    alone = 10_000 * cost.row_step_seconds

    queue.check_room(demand, deadline=alone / 2)
    with pytest.raises(DeadlineExceeded, match=r"1\.\d s of an idle server, 0\.1\d s are left"):
        queue.check_room(demand, deadline=alone / 10)


def test_caution_stretches_the_forecast() -> None:
    cost = CostModel(64)
    queue = new_queue(max_sentences=10_000, max_tokens=10**6, cost=cost)
    add_singles(queue, 2000)
    deadline = 3000 * cost.row_step_seconds
    queue.check_room(LITTLE, deadline=deadline)

    for _ in range(100):
        cost.observe_answer("", is_late=True)

    with pytest.raises(Overloaded, match=r"about 1\.\d* s"):
        queue.check_room(LITTLE, deadline=deadline)


def test_who_has_had_less_than_its_share_is_not_refused_out_of_caution() -> None:
    cost = CostModel(64)
    cost.observe_step(64, 32.0, busy_rows=0)  # half a second for a sentence
    queue = new_queue(cost=cost)
    flood, modest = Flow(name="flood"), Flow(name="modest")
    add_singles(queue, 1, flood)
    queue.take(PLAIN, lane_limits())
    add_singles(queue, 30, flood)
    add_singles(queue, 1, modest)
    deadlines = {flow: 1.5 * queue.check_room(LITTLE, flow=flow).seconds for flow in (flood, modest)}
    for flow in (flood, modest):
        for _ in range(100):
            cost.observe_answer(flow.name, is_late=True)

    queue.check_room(LITTLE, deadlines[modest], modest)
    with pytest.raises(Overloaded, match="s are left for it"):
        queue.check_room(LITTLE, deadlines[flood], flood)


def test_who_comes_first_does_not_wait_for_who_gives_way() -> None:
    cost = slow_cost()
    clock = FakeClock()
    queue = new_queue(max_rows=20, cost=cost, clock=clock)
    modest, flood = Flow(name="modest"), Flow(name="flood")
    queue.add([new_sentence(flow=modest)])
    add_singles(queue, 100, flood)
    clock.now = 0.03
    beside_one = queue.check_room(LITTLE, None, modest).seconds
    assert queue.take(PLAIN, lane_limits(max_rows=20), is_background=True)

    assert queue.check_room(LITTLE, None, modest).seconds == beside_one, "rows that give way do not count"
    assert queue.check_room(LITTLE, None, flood).seconds > 5 * beside_one


def test_who_gives_way_is_told_of_the_time_that_is_left_to_it() -> None:
    cost = CostModel(64)
    cost.observe_step(64, 32.0, busy_rows=0)
    clock = FakeClock()
    queue = new_queue(cost=cost, clock=clock)
    flood, modest = Flow(name="flood"), Flow(name="modest")
    add_singles(queue, 30, flood)
    add_singles(queue, 2, modest)  # a second of work in two
    clock.now = 0.02

    expected = queue.check_room(LITTLE, flow=flood)

    assert queue.check_room(LITTLE, flow=modest).seconds < expected.seconds
    assert expected.seconds == pytest.approx(32 * 0.5 + expected.alone / 0.5, rel=0.01)


def test_callers_who_have_left_do_not_count_for_a_refusal() -> None:
    cost = CostModel(64)
    queue = new_queue(max_sentences=10_000, max_tokens=10**6, cost=cost)
    for _ in range(2000):
        sentence = new_sentence()
        queue.add([sentence])
        sentence.future.cancel()

    queue.check_room(LITTLE, deadline=1000 * cost.row_step_seconds)

    assert len(queue.drop_over(0.0)) == 2000
    assert queue.drop_over(0.0) == []


def test_a_flow_waits_for_its_own_work_and_for_its_share() -> None:
    queue = new_queue(max_sentences=10_000, max_tokens=10**6)
    add_singles(queue, 2000, Flow(name="a"))  # 2.6 s of work

    queue.check_room(LITTLE, deadline=0.2, flow=Flow(name="b"))
    with pytest.raises(Overloaded):
        queue.check_room(LITTLE, deadline=0.2, flow=Flow(name="a"))


def test_what_another_flow_has_waiting_does_not_make_steps_seem_long() -> None:
    cost = CostModel(64)
    for rows in (4, 60):
        cost.observe_step(rows, 0.001 * rows, busy_rows=0)
    queue = new_queue(max_sentences=10_000, max_tokens=10**6, cost=cost)
    add_singles(queue, 2000, Flow(name="a"))
    demand = Demand(work=40.0, steps=40.0, rows=1)

    queue.check_room(demand, deadline=0.5, flow=Flow(name="b"))
    with pytest.raises(Overloaded):
        queue.check_room(demand, deadline=0.5, flow=Flow(name="a"))


def test_the_door_takes_nobody_out_who_must_be_answered() -> None:
    clock = FakeClock()
    queue = new_queue(max_sentences=10_000, max_tokens=10**6, clock=clock)
    add_singles(queue, 2000)
    late, left = new_sentence(deadline=1.0), new_sentence()
    queue.add([late])
    queue.add([left])
    left.future.cancel()
    clock.now = 2.0

    with pytest.raises(Overloaded):
        queue.check_room(LITTLE, deadline=2.2)

    assert queue.charges.num_sentences == 2001
    assert late in queue.close()


def test_a_queue_that_another_flow_has_filled_takes_a_flows_share() -> None:
    flood, other = Flow(name="flood"), Flow(name="other")
    queue = new_queue(max_sentences=10)
    add_singles(queue, 10, flood)

    add_singles(queue, 5, other)

    for flow in (flood, other):
        with pytest.raises(Overloaded, match="15 sentences wait, limit 10") as refusal:
            add_singles(queue, 1, flow)
        assert refusal.value.lasts_seconds > 0
    assert queue.charges.num_sentences == 15
