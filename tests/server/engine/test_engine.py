"""The engine over a fake network: stepped by hand, or on its own threads."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Result, Timings
from server.engine.batch import Batch
from server.engine.engine import Engine
from server.engine.lane import MAX_FAILURES, MAX_STEP_SECONDS
from server.errors import DeadlineExceeded, EngineFailed, NotServing, Overloaded
from server.network import StepKind
from server.telemetry.metrics import Metrics
from tests.fakes import EOS, FIRST_TOKEN, CountingRunner, FakeClock, engine_limits

GREEDY = DecodingOptions(beam_size=1)
NO_SCORES = DecodingOptions(beam_size=1, with_scores=False)
SECONDS = 20  # far above what any of these needs; a hang fails


@dataclasses.dataclass
class Bench:
    """An engine whose lanes are stepped by hand."""

    engine: Engine
    runner: CountingRunner
    clock: FakeClock
    registry: CollectorRegistry

    def submit(
        self, *counts: int, options: DecodingOptions = GREEDY, deadline: float | None = None
    ) -> list[Future[Result]]:
        return self.engine.submit([(count, 50, EOS) for count in counts], options, deadline)

    def step(self, times: int = 1, lane: int = 0) -> None:
        for _ in range(times):
            self.engine._lanes[lane].step()

    def sample(self, name: str, **labels: str) -> float:
        value = self.registry.get_sample_value(f"babelserve_{name}", {"model": "counting", **labels})
        assert value is not None
        return value


def new_bench(manifest: Manifest, num_lanes: int = 1, max_rows: int = 8, max_waiting_sentences: int = 100) -> Bench:
    runner, clock, registry = CountingRunner(), FakeClock(), CollectorRegistry()
    engine = Engine(
        runner,
        manifest,
        Metrics(registry).of_model("counting"),
        engine_limits(num_lanes, max_rows, max_waiting_sentences),
        clock,
    )
    return Bench(engine=engine, runner=runner, clock=clock, registry=registry)


@pytest.fixture
def bench(manifest: Manifest) -> Bench:
    return new_bench(manifest)


@pytest.fixture
def running(manifest: Manifest) -> Iterator[Callable[..., Bench]]:
    """Makes benches whose lanes run on their own threads."""
    benches: list[Bench] = []

    def start(**sizes: int) -> Bench:
        benches.append(new_bench(manifest, **sizes))
        benches[-1].engine.start()
        return benches[-1]

    yield start
    for one in benches:
        one.runner.may_step.set()
        one.engine.stop()


def plain_batch(bench: Bench) -> Batch:
    return bench.engine._lanes[0]._batches[StepKind.PLAIN]


def tokens(count: int) -> tuple[int, ...]:
    return tuple(range(FIRST_TOKEN, FIRST_TOKEN + count))


def test_each_sentence_leaves_when_it_is_done(bench: Bench) -> None:
    short, long = bench.submit(1, 4)

    bench.step(2)
    assert short.result(0).hypotheses[0].ids == tokens(1)
    assert not long.done()

    bench.step(3)
    assert long.result(0).hypotheses[0].ids == tokens(4)
    assert bench.sample("batch_slots_used") == 0


def test_newcomer_joins_between_two_steps(bench: Bench) -> None:
    (first,) = bench.submit(5)
    bench.step(3)
    (second,) = bench.submit(1)
    bench.step(2)

    assert second.result(0).hypotheses[0].ids == tokens(1)
    assert not first.done()
    bench.step(1)
    assert first.result(0).hypotheses[0].ids == tokens(5)


def test_greedy_and_beams_share_a_step(bench: Bench) -> None:
    (greedy,) = bench.submit(3)
    (beam,) = bench.submit(3, options=DecodingOptions(beam_size=4, num_hypotheses=3))

    bench.step()
    assert bench.sample("batch_slots_used") == 1 + 1
    bench.step()
    assert bench.sample("batch_slots_used") == 1 + 4
    while not beam.done():
        bench.step()

    assert greedy.result(0).hypotheses[0].ids == tokens(3)
    assert beam.result(0).hypotheses[0].ids == tokens(3)
    assert len(beam.result(0).hypotheses) == 3


def test_greedy_search_without_scores_is_spared_the_softmax(bench: Bench) -> None:
    futures = bench.submit(1, 3, options=NO_SCORES)

    bench.step(4)

    assert [future.result(0).hypotheses[0].ids for future in futures] == [tokens(1), tokens(3)]
    assert [future.result(0).hypotheses[0].score for future in futures] == [0.0, 0.0]
    assert bench.runner.had_log_probs == [False] * 4


@pytest.mark.parametrize("options", [GREEDY, dataclasses.replace(GREEDY, beam_size=2, with_scores=False)])
def test_a_step_has_log_probabilities_while_anyone_needs_them(bench: Bench, options: DecodingOptions) -> None:
    (spared,) = bench.submit(9, options=NO_SCORES)
    bench.step()
    (scored,) = bench.submit(1, options=options)
    while not scored.done():
        bench.step()
    num_scored = bench.runner.num_steps - 1
    bench.step(9 - num_scored)

    assert bench.runner.had_log_probs == [False, *[True] * num_scored, *[False] * (9 - num_scored)]
    assert spared.result(0).hypotheses[0].ids == tokens(9)
    assert spared.result(0).hypotheses[0].score == 0.0
    assert scored.result(0).hypotheses[0].ids == tokens(1)
    assert scored.result(0).hypotheses[0].score == pytest.approx(-0.125)


def test_a_lane_is_alone_while_no_other_has_anything_to_do(manifest: Manifest) -> None:
    bench = new_bench(manifest, num_lanes=2)
    bench.submit(5)
    bench.step()
    bench.submit(1)
    bench.step()  # the second sentence waits for the other lane
    bench.step(lane=1)
    bench.step()
    bench.step(lane=1)  # the second sentence leaves
    bench.step()

    assert bench.runner.was_alone == [True, False, False, False, False, True]


def test_limit_on_output_tokens_is_said(bench: Bench) -> None:
    (cut,) = bench.submit(9, options=DecodingOptions(beam_size=1, max_output_tokens=2))

    bench.step(2)

    (hypothesis,) = cut.result(0).hypotheses
    assert hypothesis.ids == tokens(2)
    assert hypothesis.finish_reason is FinishReason.LENGTH


def test_cancelled_sentence_is_gone_by_the_next_step(bench: Bench) -> None:
    leaves, stays = bench.submit(5, 5)
    bench.step()

    leaves.cancel()
    bench.step()

    assert bench.sample("batch_slots_used") == 1
    assert bench.sample("sentences_total", outcome="cancelled") == 1
    bench.step(4)
    assert stays.result(0).hypotheses[0].ids == tokens(5)


def test_sentence_cancelled_during_its_last_step_does_no_harm(bench: Bench) -> None:
    leaves, stays = bench.submit(1, 2)
    bench.step()
    original = plain_batch(bench)._decoder.step

    def cancel_meanwhile(*arguments: Any, **options: Any) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        leaves.cancel()
        return original(*arguments, **options)

    plain_batch(bench)._decoder.step = cancel_meanwhile  # type: ignore[method-assign]
    bench.step(2)

    assert stays.result(0).hypotheses[0].ids == tokens(2)
    assert bench.sample("sentences_total", outcome="cancelled") == 1


def test_expired_sentence_never_starts_a_step(bench: Bench) -> None:
    (expired,) = bench.submit(5, deadline=1.0)
    bench.clock.now = 1.0

    bench.step()

    with pytest.raises(DeadlineExceeded):
        expired.result(0)
    assert bench.runner.num_steps == 0
    assert bench.sample("sentences_total", outcome="deadline") == 1


def test_sentence_that_expires_while_it_runs_is_answered(bench: Bench) -> None:
    expires, stays = bench.submit(5, deadline=1.0)[0], bench.submit(5)[0]
    bench.step(2)
    bench.clock.now = 2.0
    bench.step(4)

    with pytest.raises(DeadlineExceeded):
        expires.result(0)
    assert stays.result(0).hypotheses[0].ids == tokens(5)


def test_failed_step_answers_every_sentence_in_it_and_the_next_ones_work(bench: Bench) -> None:
    first, second = bench.submit(5, 5)
    bench.step()
    bench.runner.step_failures = [RuntimeError("secret")]
    bench.step()

    for future in (first, second):
        with pytest.raises(EngineFailed, match=r"^translation failed$"):
            future.result(0)
    (after,) = bench.submit(1)
    bench.step(2)
    assert after.result(0).hypotheses[0].ids == tokens(1)
    assert bench.sample("engine_failures_total") == 1


def test_failed_encoding_spares_the_sentences_that_run(bench: Bench) -> None:
    (runs,) = bench.submit(3)
    bench.step()
    bench.runner.encode_failures = [RuntimeError("secret")]
    (fails,) = bench.submit(3)
    bench.step(3)

    with pytest.raises(EngineFailed):
        fails.result(0)
    assert runs.result(0).hypotheses[0].ids == tokens(3)
    assert bench.sample("batch_slots_used") == 0


@pytest.mark.parametrize("options", [GREEDY, DecodingOptions(beam_size=2)])
def test_log_probabilities_that_are_not_finite_fail_their_own_sentence_alone(
    bench: Bench, options: DecodingOptions
) -> None:
    (broken,), (whole,) = bench.submit(3, options=options), bench.submit(3)
    bench.step()
    batch = plain_batch(bench)
    sentence, original = batch._scheduler.running[0], batch._decoder.step

    def poison_last_row(*arguments: Any, **more: Any) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        ids, log_probs = original(*arguments, **more)
        log_probs[sentence.rows[-1]] = np.nan
        return ids, log_probs

    batch._decoder.step = poison_last_row  # type: ignore[method-assign]
    bench.step()
    batch._decoder.step = original  # type: ignore[method-assign]
    bench.step(3)

    with pytest.raises(EngineFailed):
        broken.result(0)
    assert whole.result(0).hypotheses[0].ids == tokens(3)


def test_engine_that_only_fails_calls_itself_dead(running: Callable[..., Bench]) -> None:
    bench = running()
    for _ in range(MAX_FAILURES):
        assert bench.engine.is_alive()
        bench.runner.step_failures = [RuntimeError("broken")]
        with pytest.raises(EngineFailed):
            bench.submit(1)[0].result(SECONDS)

    assert not bench.engine.is_alive()


def test_step_that_hangs_makes_the_engine_dead(running: Callable[..., Bench]) -> None:
    bench = running()
    bench.submit(3)[0].result(SECONDS)
    bench.runner.stepped.clear()
    bench.runner.may_step.clear()
    (future,) = bench.submit(3)
    while bench.engine._lanes[0]._step_started is None:
        pass  # until the lane has taken it

    bench.clock.now += MAX_STEP_SECONDS + 1
    assert not bench.engine.is_alive()

    bench.runner.may_step.set()
    future.result(SECONDS)
    assert bench.engine.is_alive()


def test_full_queue_refuses_a_request_whole(manifest: Manifest) -> None:
    bench = new_bench(manifest, max_waiting_sentences=2)
    bench.submit(1)
    bench.submit(1)

    with pytest.raises(Overloaded, match="limit 2"):
        bench.submit(1)

    assert bench.sample("queue_depth") == 2


def test_full_queue_says_so_before_a_request_is_made(manifest: Manifest) -> None:
    bench = new_bench(manifest, max_waiting_sentences=1)
    bench.engine.check_room()
    bench.submit(1)

    with pytest.raises(Overloaded):
        bench.engine.check_room()


def test_small_request_does_not_wait_for_a_large_one(bench: Bench) -> None:
    bench.submit(*[5] * 50)
    bench.step()
    (small,) = bench.submit(1)

    bench.step(9)

    assert small.result(0).hypotheses[0].ids == tokens(1)


def test_cancelled_request_makes_room_by_the_next_step(manifest: Manifest) -> None:
    bench = new_bench(manifest, max_waiting_sentences=10)
    for future in bench.submit(*[5] * 500):
        future.cancel()

    bench.step()

    assert bench.sample("queue_depth") == 0
    assert bench.sample("queue_tokens") == 0
    bench.submit(1)


def test_all_sentences_are_translated_on_several_lanes(running: Callable[..., Bench]) -> None:
    bench = running(num_lanes=3)
    counts = [1 + i % 7 for i in range(90)]

    futures = bench.submit(*counts)

    assert [len(future.result(SECONDS).hypotheses[0].ids) for future in futures] == counts


def test_stop_answers_whatever_is_left(running: Callable[..., Bench]) -> None:
    bench = running(max_rows=4)
    bench.runner.may_step.clear()
    futures = bench.submit(*[30] * 8)
    bench.runner.may_step.set()

    bench.engine.stop()

    for future in futures:
        with contextlib.suppress(NotServing):
            assert future.result(SECONDS).hypotheses[0].ids == tokens(30)
    with pytest.raises(NotServing):
        bench.submit(1)
    assert not bench.engine.is_alive()


def test_timings_are_the_clocks(bench: Bench) -> None:
    (future,) = bench.submit(1)
    bench.clock.now = 2.0
    bench.step()
    bench.clock.now = 5.0
    bench.step()

    result = future.result(0)
    assert result.timings == Timings(queue_seconds=2.0, encode_seconds=0.0, decode_seconds=3.0)


def test_metrics_count_tokens_and_padding(bench: Bench) -> None:
    bench.engine.submit([(2, EOS), (2, 50, 50, EOS)], GREEDY, None)

    bench.step(3)

    assert bench.sample("source_tokens_total") == 2 + 4
    assert bench.sample("padded_source_tokens_total") == 2 * 4
    assert bench.sample("generated_tokens_total") == 2 * 3
    assert bench.sample("sentences_total", outcome="ok") == 2
    assert bench.sample("kv_cache_bytes") > 0


SHORTLIST = DecodingOptions(beam_size=1, use_shortlist=True)


def test_sentences_of_different_kinds_run_side_by_side_and_never_share_a_step(bench: Bench) -> None:
    futures = [
        future for options in (GREEDY, SHORTLIST, GREEDY, SHORTLIST) for future in bench.submit(3, options=options)
    ]
    bench.step(4)

    assert all(future.result(0).hypotheses[0].ids == tokens(3) for future in futures)
    assert bench.runner.admitted == [(kind, row) for kind in StepKind for row in (0, 1)]  # two rows of a batch each
    assert bench.runner.kinds == [*StepKind] * 4


def test_a_lane_alone_with_both_kinds_waiting_does_not_run_empty(manifest: Manifest) -> None:
    bench = new_bench(manifest, max_rows=8, max_waiting_sentences=1000)
    for i in range(100):
        bench.submit(2 + i % 5, options=SHORTLIST if i % 2 else GREEDY)

    num_steps = 0
    while bench.sample("queue_depth"):
        bench.step()
        num_steps += 1

    assert bench.sample("batch_rows_sum") / num_steps > 7.5  # of 8 at every turn


def test_sentences_of_one_kind_share_their_steps(bench: Bench) -> None:
    bench.submit(3, 3, options=SHORTLIST)
    bench.submit(3, options=SHORTLIST)
    bench.step()

    assert bench.runner.kinds == [StepKind.SHORTLIST]
    assert [row for _, row in bench.runner.admitted] == [0, 1, 2]


def test_two_engines_share_the_metrics_and_neither_hides_the_other(manifest: Manifest) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    first, second, again = (
        Engine(CountingRunner(), manifest, metrics.of_model(name), engine_limits(), FakeClock())
        for name in ("first", "second", "second")
    )
    first.submit([(3, EOS)] * 2, GREEDY, None)
    for engine in (second, again):
        engine.submit([(3, EOS)], GREEDY, None)
    first._lanes[0].step()

    def value(name: str, model: str) -> float | None:
        return registry.get_sample_value(f"babelserve_{name}", {"model": model})

    assert [value("queue_depth", model) for model in ("first", "second")] == [0, 2]  # two engines of one model
    assert [value("batch_slots_used", model) for model in ("first", "second")] == [2, 0]
    assert [value("batch_slots", model) for model in ("first", "second")] == [8, 16]
    assert [value("source_tokens_total", model) for model in ("first", "second")] == [4, 0]
    again.stop()
    assert [value("batch_slots", model) for model in ("first", "second")] == [8, 8]
    second.stop()
    assert value("queue_depth", "second") is None
    first.stop()
