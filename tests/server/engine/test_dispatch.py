"""Which requests are admitted to the queue, and what they are told, with integers only.

The rules are in `test_admission`, and who is next in `test_fair_queue`.
"""

import math
import threading

import pytest

from server.engine.cost import CostModel, Demand
from server.engine.flow import ANYONE, Flow
from server.engine.sentence import Sentence
from server.errors import DeadlineExceeded, Overloaded
from tests.fakes import lane_limits
from tests.server.engine.parts import FLOOD, LITTLE, NEIGHBOUR, add_singles, new_dispatch, new_sentence, slow_cost, take


def test_a_request_without_sentences_does_not_wait() -> None:
    dispatch = new_dispatch()

    dispatch.add([])

    assert dispatch.waiting.num_sentences == 0
    assert take(dispatch) == []


def test_a_full_queue_refuses_a_request_whole() -> None:
    dispatch = new_dispatch(max_sentences=2)
    waiting = add_singles(dispatch, 2)

    for refuse in (lambda: dispatch.add([new_sentence()] * 2), lambda: dispatch.check(LITTLE, math.inf, ANYONE)):
        with pytest.raises(Overloaded, match="2 sentences wait, limit 2") as refusal:
            refuse()
        assert refusal.value.reason == "sentences"
    assert take(dispatch) == waiting


def test_a_full_queue_counts_source_tokens_too() -> None:
    dispatch = new_dispatch(max_tokens=10)
    add_singles(dispatch, 2)

    with pytest.raises(Overloaded, match="10 source tokens wait, limit 10") as refusal:
        dispatch.add([new_sentence()])

    assert refusal.value.reason == "tokens"
    assert dispatch.waiting.num_sentences == 2


def test_a_request_larger_than_the_limits_is_taken_by_an_empty_queue_and_leaves_room_once_it_runs() -> None:
    dispatch = new_dispatch(max_sentences=10, max_tokens=100)
    dispatch.add([new_sentence(tokens=50) for _ in range(500)])
    with pytest.raises(Overloaded, match="500 sentences wait, limit 10"):
        dispatch.check(LITTLE, math.inf, ANYONE)

    for _ in range(100):
        assert len(take(dispatch, lane_limits(max_rows=5))) == 5
    dispatch.check(LITTLE, math.inf, ANYONE)
    assert dispatch.waiting.num_sentences == 0


def test_a_queue_that_another_flow_has_filled_takes_a_flows_share() -> None:
    dispatch, other = new_dispatch(max_sentences=10), Flow(name="other")
    add_singles(dispatch, 10, FLOOD)
    add_singles(dispatch, 5, other)

    for flow in (FLOOD, other):
        with pytest.raises(Overloaded, match="15 sentences wait, limit 10") as refusal:
            add_singles(dispatch, 1, flow)
        assert refusal.value.lasts_seconds > 0
    assert dispatch.waiting.num_sentences == 15


def test_an_engine_that_runs_refuses_what_would_be_late_and_an_idle_one_tries_it() -> None:
    cost = CostModel(64)
    dispatch = new_dispatch(cost=cost)
    demand = Demand(work=10_000.0, steps=1.0, rows=1)
    alone = 10_000 * cost.row_step_seconds
    dispatch.check(demand, alone / 2, ANYONE)
    with pytest.raises(DeadlineExceeded):
        dispatch.check(demand, alone / 10, ANYONE)

    add_singles(dispatch, 1)
    with pytest.raises(Overloaded) as refusal:
        dispatch.check(demand, alone / 2, ANYONE)
    assert refusal.value.reason == "deadline"
    running = take(dispatch)
    with pytest.raises(Overloaded):
        dispatch.check(demand, alone / 2, ANYONE)
    dispatch.count(running, -1)
    dispatch.check(demand, alone / 2, ANYONE)


def test_a_forecast_grows_with_what_waits_and_what_runs() -> None:
    dispatch = new_dispatch(max_sentences=10_000, max_rows=20, cost=slow_cost())
    seconds = [dispatch.check(LITTLE, math.inf, ANYONE).seconds]
    for count in (4, 8):
        add_singles(dispatch, count)
        seconds.append(dispatch.check(LITTLE, math.inf, ANYONE).seconds)
    take(dispatch)
    seconds.append(dispatch.check(LITTLE, math.inf, ANYONE).seconds)

    assert seconds[0] < seconds[1] < seconds[2]
    assert seconds[0] < seconds[3] < seconds[2]


def test_sentences_carry_the_forecast_of_their_request_unless_it_is_alone() -> None:
    dispatch = new_dispatch(max_rows=20, cost=slow_cost())
    first, second = new_sentence(), [new_sentence(), new_sentence()]
    dispatch.add([first])
    expected = dispatch.check(Demand(2.0, 1.0, 1, 2), math.inf, ANYONE).seconds
    dispatch.add(second)

    assert take(dispatch) == [first, *second]
    assert first.forecast_seconds is None
    assert [sentence.forecast_seconds for sentence in second] == [expected] * 2


def test_no_sentence_is_looked_at_under_the_lock_when_many_come(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch = new_dispatch()
    held: list[bool] = []

    class Watched(threading.Condition):
        def __enter__(self) -> bool:
            held.append(True)
            return super().__enter__()

        def __exit__(self, *error: object) -> None:
            held.pop()
            self.release()

    dispatch._changed = Watched()
    looks: list[bool] = []

    def work(_: Sentence) -> float:
        looks.append(bool(held))
        return 1.0

    monkeypatch.setattr(Sentence, "work", property(work))

    dispatch.add([new_sentence() for _ in range(5)])

    assert looks == [False] * 5
    assert dispatch.waiting.work == 5.0


def test_a_request_looks_each_other_flow_up_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch, looked_up = new_dispatch(), [0]

    def count(flow: Flow) -> int:
        looked_up[0] += 1
        return hash(flow.name)

    monkeypatch.setattr(Flow, "__hash__", count)
    for number in range(100):
        dispatch.check(LITTLE, math.inf, Flow(name=str(number)))
    before = looked_up[0]
    dispatch.check(LITTLE, math.inf, Flow(name="0"))

    assert looked_up[0] - before < 700


def test_long_requests_are_a_flow_of_their_own() -> None:
    dispatch = new_dispatch(max_rows=20, cost=slow_cost())
    short, long = [new_sentence(flow=NEIGHBOUR)], [new_sentence(flow=NEIGHBOUR) for _ in range(100)]
    dispatch.add(short)
    dispatch.add(long)

    long_flow = NEIGHBOUR.of_long()
    assert {(sentence.flow, sentence.flow.weight) for sentence in short} == {(NEIGHBOUR, NEIGHBOUR.weight)}
    assert {(sentence.flow, sentence.flow.weight) for sentence in long} == {(long_flow, long_flow.weight)}


@pytest.mark.parametrize(("num_refused", "is_greedy"), [(6, False), (8, True)])
def test_a_flow_is_a_flood_by_twice_what_others_want_whether_it_is_refused_or_admitted(
    num_refused: int, is_greedy: bool
) -> None:
    cost, other = slow_cost(), Flow(name="other")
    dispatch = new_dispatch(max_rows=20, cost=cost)
    for flow in [other] * 10 + [FLOOD] * 15:
        dispatch.check(LITTLE, math.inf, flow)
        add_singles(dispatch, 1, flow)
        take(dispatch)
    for _ in range(num_refused):
        with pytest.raises(Overloaded):
            dispatch.check(LITTLE, dispatch.clock() + cost.alone_seconds(LITTLE) / 2, FLOOD)

    add_singles(dispatch, 1, other)

    assert (FLOOD in dispatch._queue.background) == is_greedy, f"{15 + num_refused} row-steps, beside 11"


def test_a_text_of_a_bulk_call_that_asks_until_it_is_admitted_counts_once() -> None:
    cost, bulk = slow_cost(), FLOOD.of_bulk()
    dispatch = new_dispatch(cost=cost)
    add_singles(dispatch, 1)
    for _ in range(3):
        with pytest.raises(Overloaded):
            dispatch.check(LITTLE, dispatch.clock() + cost.alone_seconds(LITTLE) / 2, bulk)

    add_singles(dispatch, 1, bulk)

    assert dispatch._asked[bulk].value == LITTLE.work
