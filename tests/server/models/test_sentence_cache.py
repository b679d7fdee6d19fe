"""The sentence cache before an engine that echoes, before the real one over a fake network, and over a real bundle."""

import contextlib
import random
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry

from server.bundle.bundle import Bundle
from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions
from server.decoding.result import Result, Timings
from server.engine.engine import Engine
from server.engine.flow import ANYONE, Flow
from server.engine.limits import EngineLimits
from server.errors import DeadlineExceeded, EngineFailed, NotServing, Overloaded
from server.models.loading import load_model
from server.models.model import SentenceEngine
from server.models.sentence_cache import SentenceCache
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.fakes import EOS, CountingRunner, FakeClock, lane_limits
from tests.server.echo_engine import EchoEngine

MODEL = ("echo", "7", "abc")
GREEDY = DecodingOptions(beam_size=1)
A, B, C = (5, EOS), (6, 7, EOS), (8, 9, 10, EOS)
SECONDS = 20  # far above what any of these needs; a hang fails


@pytest.fixture(autouse=True)
def no_callback_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What a future's callback raises is only logged."""
    yield
    assert [record.name for record in caplog.get_records("call")] == []


def new_cache(
    engine: SentenceEngine,
    metrics: Metrics,
    max_sentences: int = 10,
    is_single_flight: bool = True,
    clock: FakeClock | None = None,
) -> SentenceCache:
    return SentenceCache(
        engine,
        MODEL,
        metrics.of_model("echo"),
        max_sentences=max_sentences,
        is_single_flight=is_single_flight,
        clock=clock or FakeClock(),
    )


@pytest.fixture
def cache(engine: EchoEngine, metrics: Metrics) -> SentenceCache:
    return new_cache(engine, metrics)


@pytest.fixture
def flights(engine: EchoEngine, metrics: Metrics) -> SentenceCache:
    """A cache that keeps nothing, before an engine that answers when it is told to."""
    engine.is_holding = True
    return new_cache(engine, metrics, max_sentences=0)


def submit(
    cache: SentenceCache, source: tuple[int, ...], options: DecodingOptions = GREEDY, deadline: float | None = None
) -> Future[Result]:
    (future,) = cache.submit([source], options, deadline)
    return future


def ids(future: Future[Result]) -> tuple[int, ...]:
    return future.result(SECONDS).hypotheses[0].ids


def counted(metrics: Metrics, model: str = "echo") -> dict[str, float]:
    value = metrics.registry.get_sample_value
    results = ("hit", "joined", "miss")
    return {
        result: value("babelserve_sentence_cache_total", {"model": model, "result": result}) or 0 for result in results
    }


def test_a_sentence_that_comes_again_was_kept_and_took_no_time(
    cache: SentenceCache, engine: EchoEngine, metrics: Metrics
) -> None:
    first, again = submit(cache, A), submit(cache, A)

    assert len(engine.futures) == 1
    assert again.result().hypotheses == first.result().hypotheses
    assert first.result().timings.decode_seconds == 1.0
    assert again.result().timings == Timings()
    assert counted(metrics) == {"hit": 1, "joined": 0, "miss": 1}


def test_the_least_recently_used_leave(engine: EchoEngine, metrics: Metrics) -> None:
    cache = new_cache(engine, metrics, max_sentences=2)
    for source in (A, B, A, C):  # A is used once more before C takes B's place
        submit(cache, source)

    submit(cache, A)
    assert len(engine.futures) == 3
    submit(cache, B)
    assert len(engine.futures) == 4


def test_what_is_translated_anew_counts_as_used(engine: EchoEngine, metrics: Metrics) -> None:
    engine.is_holding = True
    cache = new_cache(engine, metrics, max_sentences=2, is_single_flight=False)
    for source in (A, A, B):
        submit(cache, source)
    for index in (0, 2, 1):
        engine.release(index)
    submit(cache, C)
    engine.release(3)

    assert submit(cache, A).done()
    assert not submit(cache, B).done()


def test_other_options_are_another_sentence(cache: SentenceCache, engine: EchoEngine) -> None:
    wide = DecodingOptions(beam_size=4, num_hypotheses=2)

    futures = [submit(cache, B), submit(cache, B, wide), submit(cache, B, wide)]

    assert len(engine.futures) == 2
    assert [len(future.result().hypotheses) for future in futures] == [1, 2, 2]


def test_another_version_of_the_model_is_never_the_answer(cache: SentenceCache, engine: EchoEngine) -> None:
    submit(cache, A)

    cache._model = ("echo", "8", "abc")
    submit(cache, A)

    assert len(engine.futures) == 2


def test_without_room_for_any_none_is_kept(engine: EchoEngine, metrics: Metrics) -> None:
    cache = new_cache(engine, metrics, max_sentences=0)

    submit(cache, A)
    submit(cache, A)

    assert len(engine.futures) == 2
    assert counted(metrics) == {"hit": 0, "joined": 0, "miss": 2}


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

    futures = cache.submit([A, B, A, A], GREEDY, None)

    assert [ids(future) for future in futures] == [A[:-1], B[:-1], A[:-1], A[:-1]]
    assert len(engine.futures) == num_submitted


def test_a_flight_deep_in_a_long_request_is_not_waited_for(flights: SentenceCache, engine: EchoEngine) -> None:
    flights.submit([A, B, C], GREEDY, None)

    alone = submit(flights, C)
    flights.submit([B, A, C], GREEDY, None)  # only B would come later than in the request before

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
        (None, None, True),
        (100.0, 100.0, True),
        (100.0, 110.0, True),
        (100.0, 112.0, False),  # the flight may end more than a tenth too early
        (110.0, 100.0, False),  # or too late
        (None, 100.0, False),
        (100.0, None, False),
    ],
)
def test_a_flight_is_joined_if_its_deadline_is_the_same_or_slightly_earlier(
    flights: SentenceCache, engine: EchoEngine, flown: float | None, own: float | None, is_joined: bool
) -> None:
    submit(flights, A, deadline=flown)
    submit(flights, A, deadline=own)

    assert engine.deadlines == ([flown] if is_joined else [flown, own])


def test_the_last_flight_is_the_one_to_join(flights: SentenceCache, engine: EchoEngine) -> None:
    old, new = submit(flights, A, deadline=50.0), submit(flights, A, deadline=100.0)
    engine.release(0)
    joined = submit(flights, A, deadline=101.0)
    engine.release(1)

    assert engine.deadlines == [50.0, 100.0]
    assert old.done()
    assert new.done()
    assert joined.done()


def test_an_error_goes_to_all_callers_and_is_not_kept(engine: EchoEngine, metrics: Metrics) -> None:
    cache = new_cache(engine, metrics)
    engine.is_holding = True
    futures = [submit(cache, A), submit(cache, A)]
    engine.fails = lambda _: EngineFailed("translation failed")
    engine.release(0)
    for future in futures:
        with pytest.raises(EngineFailed):
            future.result(0)

    engine.fails = lambda _: None
    after = submit(cache, A)
    engine.release(1)

    assert ids(after) == A[:-1]


def test_a_refused_request_leaves_nothing_behind(engine: EchoEngine, metrics: Metrics) -> None:
    cache = new_cache(engine, metrics)
    submit(cache, A)
    engine.is_holding = True
    under_way = submit(cache, B)
    before = counted(metrics)

    engine.refuses = Overloaded("full", "sentences")
    with pytest.raises(Overloaded):
        cache.submit([A, B, C, C], GREEDY, None)

    assert counted(metrics) == before
    engine.refuses = None
    submit(cache, C)
    assert len(engine.futures) == 3
    under_way.cancel()
    assert engine.futures[1].cancelled(), "the refused caller still waits"


def test_what_may_be_wrong_is_forgotten(cache: SentenceCache, engine: EchoEngine) -> None:
    submit(cache, (5, EOS))
    cache.clear()
    submit(cache, (5, EOS))

    assert len(engine.futures) == 2


def test_what_is_known_needs_no_room(cache: SentenceCache, engine: EchoEngine) -> None:
    submit(cache, A)

    engine.refuses = Overloaded("full", "sentences")

    cache.check_room(1, GREEDY, None)
    assert ids(submit(cache, A)) == A[:-1]
    with pytest.raises(Overloaded):
        submit(cache, B)


def test_while_nothing_is_known_there_must_be_room(cache: SentenceCache, engine: EchoEngine) -> None:
    engine.refuses = Overloaded("full", "sentences")

    with pytest.raises(Overloaded):
        cache.check_room(1, GREEDY, None)


@dataclass
class CrowdedEngine(EchoEngine):
    """Refuses a request, but only after another caller has come with the same."""

    cache: SentenceCache | None = None
    joined: Future[Result] | None = None

    def check_room(
        self,
        num_characters: int,
        options: DecodingOptions,
        deadline: float | None,
        flow: Flow = ANYONE,
    ) -> None:
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


def new_engine(manifest: Manifest, runner: CountingRunner, clock: FakeClock, num_lanes: int = 1) -> Engine:
    return Engine(
        runner,
        manifest,
        Metrics(CollectorRegistry()).of_model("counting"),
        EngineLimits(
            num_lanes=num_lanes,
            lane=lane_limits(max_rows=4, max_encode_tokens=100),
            max_waiting_tokens=200,
            max_waiting_sentences=20,
        ),
        clock,
    )


def test_each_caller_is_answered_by_its_own_deadline(manifest: Manifest, metrics: Metrics) -> None:
    clock = FakeClock()
    engine = new_engine(manifest, CountingRunner(), clock)
    cache = new_cache(engine, metrics, clock=clock)
    deadlines = [10.0, 10.5, 3.0, 60.0, None]
    futures = [submit(cache, (6, EOS), deadline=deadline) for deadline in deadlines]

    for deadline, num_late in ((3.0, 1), (10.0, 3)):  # the second caller shares the first one's flight
        engine._lanes[0].step()
        clock.now = deadline
        engine._lanes[0].step()
        late = [future for future in futures if future.done()]
        assert len(late) == num_late
        for future in late:
            with pytest.raises(DeadlineExceeded):
                future.result(0)
    for _ in range(7):
        engine._lanes[0].step()

    assert [future.result(0).hypotheses[0].ids for future in futures[3:]] == [tuple(range(10, 16))] * 2


@pytest.fixture
def lanes(manifest: Manifest) -> Iterator[Engine]:
    """The engine on two threads of its own."""
    engine = new_engine(manifest, CountingRunner(), FakeClock(), num_lanes=2)
    engine.start()
    yield engine
    engine.stop()


def call_often(cache: SentenceCache, seed: int) -> Iterator[str]:
    """Submits random requests and leaves some of them; yields each wrong answer."""
    chance = random.Random(seed)
    for _ in range(100):
        counts = [chance.randint(1, 6) for _ in range(chance.randint(1, 5))]
        with contextlib.suppress(Overloaded):  # the request, or one whose flight was joined
            futures = cache.submit([(count, EOS) for count in counts], GREEDY, None)
            for count, future in zip(counts, futures, strict=True):
                if chance.random() < 0.3:
                    future.cancel()
                elif len(ids(future)) != count:
                    yield f"{ids(future)} for {count}"


@pytest.mark.parametrize(("max_sentences", "is_single_flight"), [(3, False), (0, True), (3, True)])
def test_many_threads_get_their_own_translations(
    lanes: Engine, metrics: Metrics, max_sentences: int, is_single_flight: bool
) -> None:
    cache = new_cache(lanes, metrics, max_sentences, is_single_flight)

    with ThreadPoolExecutor(8) as pool:
        faults = list(pool.map(lambda seed: list(call_often(cache, seed)), range(8)))
    lanes.stop()

    assert faults == [[]] * 8
    assert cache._flights == {}
    assert len(cache._results) == max_sentences


def test_translations_are_the_same_with_and_without(tiny_bundle: Bundle, sources: list[list[int]]) -> None:
    request = [*sources[:20], *sources[:10]]
    answers = []
    for settings in (
        Settings(bundle=tiny_bundle.directory, variant="cpu-fp32", lanes=1),
        Settings(bundle=tiny_bundle.directory, variant="cpu-fp32", lanes=1, cache_sentences=15, single_flight=True),
    ):
        metrics = Metrics(CollectorRegistry())
        model = load_model(settings, metrics)
        try:
            for _ in range(2):
                futures = model.engine.submit(request, DecodingOptions(beam_size=4), None)
                answers.append([ids(future) for future in futures])
        finally:
            model.engine.stop()

    assert all(answer == answers[0] for answer in answers[1:])
    counts = counted(metrics, tiny_bundle.manifest.name)
    assert counts["joined"] >= 10
    assert counts["hit"] > 0


def test_nothing_stands_before_the_engine_unless_asked_for(tiny_bundle: Bundle, metrics: Metrics) -> None:
    model = load_model(Settings(bundle=tiny_bundle.directory, variant="cpu-fp32", lanes=1), metrics)
    model.engine.stop()

    assert isinstance(model.engine, Engine)
    assert counted(metrics, tiny_bundle.manifest.name) == {"hit": 0, "joined": 0, "miss": 0}
