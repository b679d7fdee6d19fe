"""Equal sentences that are under way at once, before an engine that echoes when it is told to."""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import pytest

from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.flow import ANYONE, Flow
from server.errors import NotServing
from server.models.sentence_cache import SentenceCache
from server.telemetry.metrics import Metrics
from tests.server.echo_engine import EchoEngine
from tests.server.models.cached import GREEDY, A, B, C, counted, ids, new_cache, submit


@pytest.fixture(autouse=True)
def no_callback_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What a future's callback raises is only logged."""
    yield
    assert [record.name for record in caplog.get_records("call")] == []


@pytest.fixture
def flights(engine: EchoEngine, metrics: Metrics) -> SentenceCache:
    """A cache that keeps nothing, before an engine that answers when it is told to."""
    engine.is_holding = True
    return new_cache(engine, metrics, max_sentences=0)


def test_equal_sentences_share_a_flight(flights: SentenceCache, engine: EchoEngine, metrics: Metrics) -> None:
    first, second = submit(flights, A), submit(flights, A)
    assert first is not second
    assert len(engine.futures) == 1

    engine.release(0)

    assert ids(first) == ids(second) == A[:-1]
    assert counted(metrics) == {"hit": 0, "joined": 1, "miss": 1}
    submit(flights, A)
    assert len(engine.futures) == 2, "a flight that has landed is not joined"


@pytest.mark.parametrize(("is_single_flight", "num_submitted"), [(True, 2), (False, 4)])
def test_equal_sentences_of_one_request_share_a_flight(
    engine: EchoEngine, metrics: Metrics, is_single_flight: bool, num_submitted: int
) -> None:
    cache = new_cache(engine, metrics, is_single_flight=is_single_flight)

    futures = cache.submit([A, B, A, A], GREEDY)

    assert [ids(future) for future in futures] == [A[:-1], B[:-1], A[:-1], A[:-1]]
    assert len(engine.futures) == num_submitted


def test_a_flight_deep_in_a_long_request_is_not_waited_for(flights: SentenceCache, engine: EchoEngine) -> None:
    flights.submit([A, B, C], GREEDY)

    alone = submit(flights, C)
    flights.submit([B, A, C], GREEDY)  # only B would come later than in the request before

    assert len(engine.futures) == 5
    engine.release(3)
    assert alone.done()


def test_a_caller_who_leaves_does_so_alone(flights: SentenceCache, engine: EchoEngine) -> None:
    first, second = submit(flights, A), submit(flights, A)

    assert first.cancel()
    assert not engine.futures[0].cancelled()
    engine.release(0)

    assert ids(second) == A[:-1]


def test_the_last_caller_who_leaves_ends_the_flight(flights: SentenceCache, engine: EchoEngine) -> None:
    for future in (submit(flights, A), submit(flights, A)):
        future.cancel()
    assert engine.futures[0].cancelled()

    after = submit(flights, A)
    engine.release(1)

    assert ids(after) == A[:-1]


def test_a_caller_may_leave_while_another_is_answered(flights: SentenceCache, engine: EchoEngine) -> None:
    first, second = submit(flights, A), submit(flights, A)
    first.add_done_callback(lambda _: second.cancel())
    second.add_done_callback(lambda _: first.cancel())

    engine.release(0)

    assert sorted([first.cancelled(), second.cancelled()]) == [False, True]


@pytest.mark.parametrize(
    ("flown", "own", "is_joined"),
    [
        (math.inf, math.inf, True),
        (100.0, 100.0, True),
        (100.0, 110.0, True),
        (100.0, 112.0, False),  # the flight may end more than a tenth too early
        (110.0, 100.0, False),  # or too late
        (math.inf, 100.0, False),
        (100.0, math.inf, False),
    ],
)
def test_a_flight_is_joined_if_its_deadline_is_the_same_or_slightly_earlier(
    flights: SentenceCache, engine: EchoEngine, flown: float, own: float, is_joined: bool
) -> None:
    submit(flights, A, deadline=flown)
    submit(flights, A, deadline=own)

    assert engine.deadlines == ([flown] if is_joined else [flown, own])


@pytest.mark.parametrize(
    ("flown", "is_joined"),
    [
        (Flow(name="a"), True),
        (Flow(name="a", rank=-1, weight=2.0), True),
        (Flow(name="a", rank=1), False),  # it goes behind others of the flow
        (Flow(name="a").of_bulk(), False),  # it is in the background
        (Flow(name="b"), False),  # this flow may be
    ],
)
def test_a_flight_is_joined_if_it_is_of_the_same_flow_and_of_no_worse_a_rank(
    flights: SentenceCache, engine: EchoEngine, flown: Flow, is_joined: bool
) -> None:
    own = Flow(name="a")
    for flow in (flown, own, own):
        flights.submit([A], GREEDY, flow=flow)

    assert engine.flows == ([flown] if is_joined else [flown, own])


def test_each_flow_has_a_flight_to_join(flights: SentenceCache, engine: EchoEngine) -> None:
    flows = [Flow(name="a"), Flow(name="b")]
    for flow in flows * 2:
        flights.submit([A], GREEDY, flow=flow)

    assert engine.flows == flows


def test_the_last_flight_is_the_one_to_join(flights: SentenceCache, engine: EchoEngine) -> None:
    old, new = submit(flights, A, deadline=50.0), submit(flights, A, deadline=100.0)
    engine.release(0)
    joined = submit(flights, A, deadline=101.0)
    engine.release(1)

    assert engine.deadlines == [50.0, 100.0]
    assert old.done()
    assert new.done()
    assert joined.done()


@dataclass
class CrowdedEngine(EchoEngine):
    """Refuses a request, but only after another caller has come with the same."""

    cache: SentenceCache | None = None
    joined: Future[Result] | None = None

    def check_room(
        self,
        lengths: Sequence[int],
        options: DecodingOptions,
        deadline: float = math.inf,
        flow: Flow = ANYONE,
    ) -> float:
        assert self.cache is not None
        self.joined = submit(self.cache, A)
        raise NotServing("the server is shutting down")


def test_whoever_joined_a_flight_that_is_refused_hears_of_it(metrics: Metrics) -> None:
    engine = CrowdedEngine()
    engine.cache = new_cache(engine, metrics)

    with pytest.raises(NotServing):
        submit(engine.cache, A)

    assert engine.joined is not None
    with pytest.raises(NotServing):
        engine.joined.result(0)
    assert not engine.joined.cancel()
