"""The sentence cache before an engine that echoes, before the real one over a fake network, and over a real bundle."""

import contextlib
import math
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from server.bundle.bundle import Bundle
from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import FinishReason, Hypothesis, Result, SearchNode, Timings
from server.engine.engine import Engine
from server.engine.limits import EngineLimits
from server.errors import DeadlineExceeded, EngineFailed, Overloaded
from server.models.loading import load_model
from server.models.sentence_cache import SentenceCache
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.fakes import EOS, CountingRunner, FakeClock, lane_limits
from tests.server.echo_engine import EchoEngine
from tests.server.models.cached import GREEDY, A, B, C, counted, ids, new_cache, submit


@pytest.fixture(autouse=True)
def no_callback_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What a future's callback raises is only logged."""
    yield
    assert [record.name for record in caplog.get_records("call")] == []


@pytest.fixture
def cache(engine: EchoEngine, metrics: Metrics) -> SentenceCache:
    return new_cache(engine, metrics)


def test_a_sentence_that_comes_again_was_kept_and_took_no_time(
    cache: SentenceCache, engine: EchoEngine, metrics: Metrics
) -> None:
    engine.is_long = True
    first, again = submit(cache, A), submit(cache, A)

    assert len(engine.futures) == 1
    assert (first.result().is_long, again.result().is_long) == (True, False), "the second request may be short"
    assert again.result().hypotheses == first.result().hypotheses
    assert first.result().timings.decode_seconds == 1.0
    assert again.result().timings == Timings()
    assert counted(metrics) == {"hit": 1, "joined": 0, "miss": 1}


def test_as_many_sentences_run_at_once_as_of_the_engine(cache: SentenceCache, engine: EchoEngine) -> None:
    assert cache.most_sentences(GREEDY) == engine.most_sentences(GREEDY) == 8


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


@dataclass
class LargeEngine(EchoEngine):
    """Its answers have something large."""

    large: dict[str, Any] = field(default_factory=dict)

    def _echo(self, source: tuple[int, ...], options: DecodingOptions) -> Result:
        return replace(super()._echo(source, options), **self.large)


@pytest.mark.parametrize(
    "large",
    [
        {"attention": np.zeros((64, 64), np.float32)},
        {"tree": (SearchNode(None, 5, -1.0),) * 64},
        {"hypotheses": (Hypothesis((5,) * 200, -1.0, FinishReason.STOP, (-1.0,) * 200),)},
    ],
)
def test_no_more_is_kept_than_the_memory_for_so_many_usual_sentences(metrics: Metrics, large: dict[str, Any]) -> None:
    cache = new_cache(LargeEngine(large=large), metrics, max_sentences=10)
    sources = [(number, EOS) for number in range(10)]
    for source in [*sources, sources[-1], sources[0]]:
        submit(cache, source)
    assert counted(metrics) == {"hit": 1, "joined": 0, "miss": 11}

    cache.clear()
    for again in (A, B, A, B):
        submit(cache, again)

    assert counted(metrics) == {"hit": 3, "joined": 0, "miss": 13}, "the memory is free again"


def test_samples_are_not_kept_because_they_hardly_come_again(cache: SentenceCache, engine: EchoEngine) -> None:
    sampled = replace(GREEDY, sampling=Sampling(seed=3))

    submit(cache, A, sampled)
    submit(cache, A, sampled)

    assert len(engine.futures) == 2


def test_a_sentence_in_another_language_is_another_one(cache: SentenceCache, engine: EchoEngine) -> None:
    for prefix in ((41,), (42,), (41,)):
        submit(cache, A, DecodingOptions(beam_size=1, forced_prefix=prefix))

    assert [options.forced_prefix for options in engine.options] == [(41,), (42,)]


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
        cache.submit([A, B, C, C], GREEDY)

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

    assert cache.check_room([1], GREEDY) == 0.0
    assert ids(submit(cache, A)) == A[:-1]
    with pytest.raises(Overloaded):
        submit(cache, B)


def test_while_nothing_is_known_there_must_be_room(cache: SentenceCache, engine: EchoEngine) -> None:
    engine.refuses = Overloaded("full", "sentences")

    with pytest.raises(Overloaded):
        cache.check_room([1], GREEDY)


def new_engine(manifest: Manifest, runner: CountingRunner, clock: FakeClock, num_lanes: int = 1) -> Engine:
    return Engine(
        runner,
        manifest,
        Metrics(CollectorRegistry()).of_model("counting", "1"),
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
    deadlines = [10.0, 10.5, 3.0, 60.0, math.inf]
    futures = [submit(cache, (6, EOS), deadline=deadline) for deadline in deadlines]

    for deadline, num_late in ((3.0, 1), (10.0, 3)):  # the second caller shares the first one's flight
        engine.lanes[0].step()
        clock.now = deadline
        engine.lanes[0].step()
        late = [future for future in futures if future.done()]
        assert len(late) == num_late
        for future in late:
            with pytest.raises(DeadlineExceeded):
                future.result(0)
    for _ in range(7):
        engine.lanes[0].step()

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
            futures = cache.submit([(count, EOS) for count in counts], GREEDY)
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
                futures = model.engine.submit(request, DecodingOptions(beam_size=4))
                answers.append([ids(future) for future in futures])
        finally:
            model.engine.stop()

    assert all(answer == answers[0] for answer in answers[1:])
    counts = counted(metrics, tiny_bundle.manifest.name, version=tiny_bundle.manifest.version)
    assert counts["joined"] >= 10
    assert counts["hit"] > 0


def test_nothing_stands_before_the_engine_unless_asked_for(tiny_bundle: Bundle, metrics: Metrics) -> None:
    model = load_model(Settings(bundle=tiny_bundle.directory, variant="cpu-fp32", lanes=1), metrics)
    model.engine.stop()

    assert isinstance(model.engine, Engine)
    assert counted(metrics, tiny_bundle.manifest.name) == {"hit": 0, "joined": 0, "miss": 0}


def test_each_caller_of_a_flight_knows_what_its_sentence_has_so_far(cache: SentenceCache, engine: EchoEngine) -> None:
    engine.is_holding = True
    first, joined = submit(cache, B), submit(cache, B)
    other = submit(cache, C)

    found = cache.ids_so_far([first, joined])

    assert found == {first: [6], joined: [6]}
    assert other not in found
    engine.release(0)
    assert cache.ids_so_far([first, joined]) == {}
