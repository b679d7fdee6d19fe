"""Who leaves, who is dropped, who waits and how all ends: no model, and threads only to wait."""

import math
import random
import threading
from concurrent.futures import Future

import pytest

from server.decoding.result import Result
from server.engine.dispatch import Dispatch
from server.engine.fair_queue import Load
from server.engine.flow import ANYONE, Flow
from server.engine.sentence import Sentence
from server.errors import NotServing, Overloaded
from tests.fakes import FakeClock, lane_limits
from tests.server.engine.parts import (
    LITTLE,
    NEIGHBOUR,
    add_singles,
    new_dispatch,
    new_sentence,
    slow_cost,
    take,
)

SECONDS = 100.0  # far above what any of these needs; a hang fails


def test_rows_are_all_when_nothing_waits_and_no_other_lane_runs() -> None:
    dispatch = new_dispatch(num_lanes=2)
    dispatch.add([new_sentence(beam_size=4)])
    take(dispatch)
    assert dispatch.is_all(4)

    dispatch.add([new_sentence(beam_size=4)])
    assert not dispatch.is_all(4)  # whoever takes it, soon there are two

    taken = take(dispatch)
    assert not dispatch.is_all(4)

    dispatch.count(taken, -1)
    assert dispatch.is_all(4)


def test_who_never_waited_runs_all_the_same() -> None:
    dispatch = new_dispatch()
    canary = [new_sentence(beam_size=4)]

    dispatch.count(canary, +1)
    assert dispatch.is_all(4)
    dispatch.count(canary, -1)
    assert dispatch.is_all(0)


def test_an_engine_asks_for_the_time_of_all_that_it_runs_and_that_waits() -> None:
    dispatch = new_dispatch(cost=slow_cost())  # 20 rows take a second
    seen = [dispatch.asked_seconds]
    dispatch.add([new_sentence(beam_size=4) for _ in range(5)])
    seen.append(dispatch.asked_seconds)
    taken = take(dispatch, lane_limits(max_rows=8))
    seen.append(dispatch.asked_seconds)
    dispatch.count(taken, -1)
    seen.append(dispatch.asked_seconds)

    assert seen == pytest.approx([0.0, 1.0, 1.0, 0.6], rel=0.01)


def test_what_is_over_leaves_wherever_its_request_stands() -> None:
    clock = FakeClock()
    dispatch = new_dispatch(clock=clock)
    left, expired, wanted = new_sentence(), new_sentence(deadline=1.0), new_sentence(deadline=2.0)
    for sentence in (left, wanted, expired):
        dispatch.add([sentence])
    left.future.cancel()
    clock.now = 1.0

    assert set(dispatch.drop_over()) == {left, expired}
    assert (dispatch.waiting.num_sentences, dispatch.waiting.num_tokens) == (1, 5)
    assert take(dispatch) == [wanted]


def test_of_a_request_only_those_sentences_leave_whose_callers_have_left() -> None:
    dispatch = new_dispatch()
    sentences = [new_sentence() for _ in range(5)]
    dispatch.add(sentences)
    for sentence in sentences[1:3]:
        sentence.future.cancel()

    assert dispatch.drop_over() == sentences[1:3]
    assert take(dispatch) == [sentences[0], *sentences[3:]]


def test_what_another_lane_takes_while_all_is_looked_at_is_that_lanes() -> None:
    dispatch = new_dispatch()
    sentences = [new_sentence() for _ in range(3)]
    taken: list[Sentence] = []

    class Watched(Future[Result]):
        is_asked = False

        def cancelled(self) -> bool:
            if self.is_asked:
                taken.extend(take(dispatch, lane_limits(max_rows=1)))
            return super().cancelled()

    sentences[1].future = Watched()
    dispatch.add(sentences)
    for sentence in sentences:
        sentence.future.cancel()
    Watched.is_asked = True

    assert dispatch.drop_over() == sentences[1:]
    assert taken == sentences[:1]
    assert dispatch.waiting == Load()


def test_no_future_is_asked_while_nobody_has_left() -> None:
    clock = FakeClock()
    dispatch, num_asked = new_dispatch(clock=clock), 0

    class Counted(Future[Result]):
        def cancelled(self) -> bool:
            nonlocal num_asked
            num_asked += 1
            return super().cancelled()

    sentences = [new_sentence() for _ in range(3)]
    sentences[0].future = Counted()
    dispatch.add(sentences)
    clock.now = 1.0
    assert dispatch.drop_over() == []
    assert num_asked == 0

    sentences[1].future.cancel()
    clock.now = 2.0
    assert dispatch.drop_over() == [sentences[1]]
    assert num_asked == 1


def test_all_that_waits_is_looked_at_a_few_times_a_second() -> None:
    clock = FakeClock()
    dispatch = new_dispatch(clock=clock)
    sentences = add_singles(dispatch, 3)
    found = []
    for clock.now in (1.0, 1.05, 1.11, 1.3):
        found.append(dispatch.drop_over())
        if sentences:
            sentences.pop().future.cancel()

    assert [len(each) for each in found] == [0, 0, 2, 1]


def test_callers_who_have_left_make_room() -> None:
    dispatch = new_dispatch(max_sentences=500)
    sentences = add_singles(dispatch, 500)
    with pytest.raises(Overloaded):
        dispatch.check(LITTLE, math.inf, ANYONE)

    for sentence in sentences[100:]:
        sentence.future.cancel()

    assert dispatch.drop_over() == sentences[100:]
    assert dispatch.waiting.num_sentences == 100
    dispatch.check(LITTLE, math.inf, ANYONE)


def test_a_request_that_can_no_longer_be_in_time_is_dropped_whole() -> None:
    clock = FakeClock()
    dispatch = new_dispatch(clock=clock)
    late, wanted = [new_sentence(deadline=1.0) for _ in range(3)], [new_sentence(deadline=2.0)]
    dispatch.add([new_sentence()])
    running = take(dispatch)
    dispatch.add(late)
    dispatch.add(wanted)

    clock.now = 0.8
    assert dispatch.drop_over() == []
    clock.now = 0.999
    assert dispatch.drop_over() == late
    assert take(dispatch, running=running) == wanted


def test_a_sentence_is_late_by_what_it_takes_alone() -> None:
    cost, clock = slow_cost(), FakeClock()
    dispatch = new_dispatch(max_rows=20, cost=cost, clock=clock)
    add_singles(dispatch, 20)
    assert len(take(dispatch)) == 20
    dispatch.add([late := new_sentence(deadline=10.0)])

    clock.now = 10.0 - cost.alone_seconds(LITTLE) - 0.01
    assert dispatch.drop_over() == [], "what runs may end soon"
    clock.now += 0.2
    assert dispatch.drop_over() == [late]


def test_what_an_idle_engine_has_admitted_is_tried_while_a_quarter_of_its_forecast_is_left() -> None:
    cost, clock = slow_cost(), FakeClock()
    dispatch = new_dispatch(max_rows=20, cost=cost, clock=clock)
    sentences = [new_sentence(deadline=10.0) for _ in range(2)]
    dispatch.add(sentences)
    alone = cost.alone_seconds(LITTLE)
    assert take(dispatch, lane_limits(1)) == sentences[:1]

    clock.now = 10.0 - alone / 2
    assert dispatch.drop_over() == []
    clock.now = 10.0 - alone / 5
    assert dispatch.drop_over() == sentences[1:]


def test_an_engine_that_runs_nothing_tries_what_waits() -> None:
    cost, clock = slow_cost(), FakeClock()
    dispatch = new_dispatch(max_rows=20, cost=cost, clock=clock)
    dispatch.add([new_sentence()])
    dispatch.add([late := new_sentence(deadline=10.0)])

    clock.now = 10.0 - cost.alone_seconds(LITTLE) / 2
    assert dispatch.drop_over() == []
    dispatch.count([new_sentence()], +1)
    clock.now += 0.11
    assert dispatch.drop_over() == [late]


def test_closed_dispatch_returns_what_waits_once_and_refuses_more() -> None:
    dispatch = new_dispatch()
    waiting = [new_sentence(), new_sentence(use_shortlist=True), new_sentence(flow=NEIGHBOUR)]
    for sentence in waiting:
        dispatch.add([sentence])

    assert set(dispatch.close()) == set(waiting)
    assert dispatch.close() == []
    assert (dispatch.waiting.num_sentences, dispatch.waiting.num_tokens, dispatch.is_open) == (0, 0, False)
    assert take(dispatch) == []
    for refuse in (lambda: dispatch.add([new_sentence()]), lambda: dispatch.check(LITTLE, math.inf, ANYONE)):
        with pytest.raises(NotServing):
            refuse()


def waiting_thread(dispatch: Dispatch, woken: list[bool], wanted: threading.Event) -> threading.Thread:
    """Starts a thread that waits as an idle lane does, and returns it once it waits."""
    asked = threading.Event()

    def is_wanted() -> bool:
        asked.set()
        return wanted.is_set() or dispatch.waiting.num_sentences > 0

    thread = threading.Thread(target=lambda: woken.append(dispatch.wait(is_wanted)), daemon=True)
    thread.start()
    assert asked.wait(SECONDS)
    return thread


def test_idle_lane_wakes_when_work_arrives_when_it_is_told_to_and_at_the_end() -> None:
    for event, is_open in (("add", True), ("wake", True), ("close", False)):
        dispatch, woken, wanted = new_dispatch(), list[bool](), threading.Event()
        thread = waiting_thread(dispatch, woken, wanted)
        if event == "add":
            dispatch.add([new_sentence()])
        elif event == "wake":
            wanted.set()
            dispatch.wake()
        else:
            dispatch.close()
        thread.join(SECONDS)

        assert woken == [is_open], event


def test_an_idle_lane_that_is_not_wanted_is_told_when_its_time_is_up() -> None:
    dispatch = new_dispatch()

    assert not dispatch.wait(lambda: False, 0.01)
    assert dispatch.wait(lambda: True, 0.01)


def test_callers_and_lanes_on_many_threads_lose_nothing_and_take_nothing_twice() -> None:
    dispatch = new_dispatch(max_sentences=10**6, max_tokens=10**7, num_lanes=3)
    added: list[list[Sentence]] = [[] for _ in range(4)]
    taken: list[list[Sentence]] = [[] for _ in range(3)]

    def submit(index: int) -> None:
        rng = random.Random(index)
        for _ in range(200):
            flow = Flow(name=rng.choice("abc"), weight=rng.choice([1.0, 2.0]))
            sentences = [new_sentence(beam_size=rng.choice([1, 2]), flow=flow) for _ in range(rng.randrange(1, 4))]
            added[index] += sentences
            dispatch.add(sentences)
            if rng.random() < 0.2:
                sentences[0].future.cancel()

    def run(index: int) -> None:
        while dispatch.wait(lambda: dispatch.waiting.num_sentences > 0):
            taken[index] += dispatch.drop_over()
            for is_background in (False, True):
                entering = take(dispatch, lane_limits(8), is_background=is_background)
                dispatch.count(entering, -1)
                taken[index] += entering

    lanes = [threading.Thread(target=run, args=[index], daemon=True) for index in range(3)]
    callers = [threading.Thread(target=submit, args=[index]) for index in range(4)]
    for thread in lanes + callers:
        thread.start()
    for thread in callers:
        thread.join(SECONDS)
    left = dispatch.close()
    for thread in lanes:
        thread.join(SECONDS)

    found = [*left, *(sentence for each in taken for sentence in each)]
    assert len(found) == len(set(found))
    assert set(found) == {sentence for each in added for sentence in each}
    assert (dispatch.waiting.num_sentences, dispatch.waiting.num_tokens) == (0, 0)
    assert dispatch.is_all(0)
