"""Batches of networks that write all words at once: the engine's own parts, and the network of a real bundle."""

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from server.bundle.bundle import Bundle
from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.cost import CostModel
from server.engine.engine import Engine
from server.engine.one_pass import OnePassBatch, OnePassCost, bounded
from server.errors import DeadlineExceeded, EngineFailed, InvalidRequest
from server.network import OutOfMemory
from server.runtime.one_pass import OnePassDecoder, OnePassRunner
from server.runtime.runner import open_runner
from server.telemetry.metrics import Metrics
from tests.fakes import FakeClock, engine_limits

GREEDY = DecodingOptions(beam_size=1)


class Watched:
    """A real runner whose decoders note their steps, and fail where a test says so."""

    entry_interval = 1

    def __init__(self, runner: OnePassRunner) -> None:
        self._runner = runner
        self.steps: list[int] = []  # rows of each
        self.failures: list[Exception] = []
        self.spoil: Callable[[Any], None] = lambda log_probs: None

    def encode(self, source_ids: Any, source_lengths: Any) -> Any:
        return self._runner.encode(source_ids, source_lengths)

    def open_decoder(self, kind: Any, max_rows: int) -> OnePassDecoder:
        decoder, step = self._runner.open_decoder(kind, max_rows), OnePassDecoder.step

        def watched_step(inputs: Any) -> Any:
            self.steps.append(len(inputs.source_lengths))
            if self.failures:
                raise self.failures.pop()
            ids, log_probs = step(decoder, inputs)
            self.spoil(log_probs)
            return ids, log_probs

        decoder.step = watched_step  # type: ignore[method-assign]
        return decoder


class Bench:
    """An engine of one lane that takes its turns when a test says so."""

    def __init__(self, bundle: Bundle, runner: OnePassRunner, max_rows: int = 16) -> None:
        self.runner, self.clock = Watched(runner), FakeClock()
        self.metrics = Metrics(CollectorRegistry()).of_model("one-pass", "0")
        limits = engine_limits(max_rows=max_rows)
        self.engine = Engine(self.runner, bundle.manifest, self.metrics, limits, self.clock)
        (self.lane,) = self.engine.lanes

    def submit(self, sources: list[list[int]], options: DecodingOptions = GREEDY, **more: Any) -> list[Future[Result]]:
        return self.engine.submit(sources, options, **more)

    def run(self, turns: int = 1) -> None:
        for _ in range(turns):
            self.lane.step()


@pytest.fixture(scope="module")
def runner(one_pass_bundle: Bundle) -> OnePassRunner:
    opened = open_runner(one_pass_bundle, "cpu-fp32", "cpu")
    assert isinstance(opened, OnePassRunner)
    return opened


@pytest.fixture
def bench(one_pass_bundle: Bundle, runner: OnePassRunner) -> Iterator[Bench]:
    one = Bench(one_pass_bundle, runner)
    yield one
    one.engine.stop()


def test_sentences_are_answered_in_one_turn_and_hold_no_rows(bench: Bench, sources: list[list[int]]) -> None:
    futures = bench.submit(sources[:6])

    bench.run()

    assert bench.runner.steps == [6]
    assert all(future.result(0).hypotheses[0].ids for future in futures)
    assert bench.lane.num_rows == 0
    assert bench.engine.is_idle


def test_whatever_is_asked_for_beside_it_a_sentence_is_translated_as_alone(
    bench: Bench, sources: list[list[int]]
) -> None:
    asked = [
        GREEDY,
        DecodingOptions(beam_size=4, num_hypotheses=4),
        dataclasses.replace(GREEDY, ratio=0.5),
        dataclasses.replace(GREEDY, with_scores=False),
        DecodingOptions(beam_size=8),
    ]
    together = [bench.submit([source], options)[0] for source, options in zip(sources, asked, strict=False)]
    bench.run()
    assert len(bench.runner.steps) == 1

    for source, options, future in zip(sources, asked, together, strict=False):
        (alone,) = bench.submit([source], options)
        bench.run()
        assert future.result(0).hypotheses == alone.result(0).hypotheses or not options.with_scores
        assert [each.ids for each in future.result(0).hypotheses] == [each.ids for each in alone.result(0).hypotheses]


def test_a_length_that_is_too_long_fails_that_sentence_alone(bench: Bench, sources: list[list[int]]) -> None:
    short, long = sorted(sources, key=len)[:: len(sources) - 1]
    options = dataclasses.replace(GREEDY, exact_tokens=2 * len(short) + 1)

    failing, fitting = bench.submit([short, long], options)
    bench.run()

    with pytest.raises(InvalidRequest, match=r"decoding\.exact_tokens"):
        failing.result(0)
    assert len(fitting.result(0).hypotheses[0].ids) == 2 * len(short) + 1
    assert bench.lane.faults.count == 0
    assert bench.engine.is_idle


def test_cancelled_and_late_sentences_take_no_part(bench: Bench, sources: list[list[int]]) -> None:
    cancelled, stays = bench.submit(sources[:2])
    (late,) = bench.submit(sources[2:3], deadline=5.0)
    cancelled.cancel()
    bench.clock.now = 6.0

    bench.run()

    assert bench.runner.steps == [1]
    assert stays.exception(0) is None
    with pytest.raises(DeadlineExceeded):
        late.result(0)


def test_a_failed_run_answers_its_sentences_and_the_lane_waits_for_a_canary(
    bench: Bench, one_pass_bundle: Bundle, sources: list[list[int]]
) -> None:
    bench.runner.failures = [RuntimeError("broken")]
    futures = bench.submit(sources[:3])
    bench.run()
    for future in futures:
        with pytest.raises(EngineFailed):
            future.result(0)

    (waiting,) = bench.submit(sources[:1])
    bench.run()
    assert not waiting.done()

    golden, options = one_pass_bundle.manifest.golden, one_pass_bundle.manifest.golden_options()
    canary = bench.engine.send_canary(bench.lane, golden.source_ids, options)
    bench.run()
    assert canary.result(0).hypotheses[0].ids == golden.outputs["cpu-fp32"].ids
    bench.lane.forgive(bench.lane.faults.count)
    bench.run()
    assert waiting.done()


def test_without_memory_the_older_half_takes_the_run_again(bench: Bench, sources: list[list[int]]) -> None:
    bench.runner.failures = [OutOfMemory("none")]
    futures = bench.submit(sources[:4])

    bench.run(2)

    assert bench.runner.steps == [4, 2]
    assert [future.exception(0) is None for future in futures] == [True, True, False, False]
    assert bench.lane.num_rows == 0


def test_rows_that_move_keep_their_sources(bench: Bench, sources: list[list[int]]) -> None:
    (expected,) = bench.submit(sources[1:2])
    bench.run()
    bench.runner.failures = [OutOfMemory("none")]
    first, second, *_ = bench.submit(sources[:4])
    bench.run()
    first.cancel()

    bench.run()

    assert second.result(0).hypotheses == expected.result(0).hypotheses


def test_numbers_that_are_not_finite_fail_their_sentence_alone(bench: Bench, sources: list[list[int]]) -> None:
    def spoil(log_probs: Any) -> None:
        log_probs[1, 0, 1] = np.nan

    bench.runner.spoil = spoil
    good, bad = bench.submit(sources[:2])

    bench.run()

    assert good.exception(0) is None
    with pytest.raises(EngineFailed):
        bad.result(0)


def test_a_run_has_at_most_32_mib_of_logits() -> None:
    limits = engine_limits()

    assert bounded(limits, 32_000).lane.max_encode_tokens == (32 << 20) // (2 * 32_000 * 4)
    assert bounded(limits, 100).lane.max_encode_tokens == limits.lane.max_encode_tokens
    assert bounded(limits, 1 << 30).lane.max_encode_tokens == 1


def test_sentences_beyond_the_bound_wait_for_the_next_turn(
    one_pass_bundle: Bundle, runner: OnePassRunner, sources: list[list[int]]
) -> None:
    sizes = dataclasses.replace(one_pass_bundle.manifest.dimensions, vocab_size=(32 << 20) // (8 * 100))  # 100 tokens
    manifest = dataclasses.replace(one_pass_bundle.manifest, dimensions=sizes)
    bench = Bench(dataclasses.replace(one_pass_bundle, manifest=manifest), runner, max_rows=100)
    futures = bench.submit([sources[0]] * 30)

    bench.run(30)

    assert all(future.done() for future in futures)
    assert max(bench.runner.steps) == 100 // len(sources[0])
    bench.engine.stop()


def test_costs_go_with_the_tokens_of_a_sentence() -> None:
    cost: CostModel = OnePassCost(16)
    for _ in range(200):
        for tokens in (10, 30):
            cost.observe_sentence(tokens, 7)

    assert cost.steps(20, GREEDY) == pytest.approx(1.0, rel=0.05)
    assert cost.steps(40, GREEDY) == pytest.approx(2 * cost.steps(20, GREEDY))
    demand = cost.demand([10, 30, 20, 20], GREEDY)
    assert demand.work == pytest.approx(4, rel=0.05)
    assert demand.steps == pytest.approx(1.5, rel=0.05)


def test_an_engine_makes_what_the_family_of_its_manifest_needs(bench: Bench) -> None:
    assert {type(batch) for batch in bench.lane._batches} == {OnePassBatch}
