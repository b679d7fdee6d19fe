"""The engine over a fake network, its lanes stepped by hand."""

import dataclasses
import weakref
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from server.bundle.manifest import Manifest, SearchDefaults
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason
from server.engine.cores import Cores
from server.engine.engine import Engine
from server.engine.lane import Lane
from server.engine.sentence import Sentence
from server.errors import NotServing, Overloaded
from server.telemetry.metrics import Metrics
from server.telemetry.model_metrics import LANE_STATES
from tests.fakes import EOS, FIRST_TOKEN, CountingRunner, FakeClock, engine_limits
from tests.server.engine.bench import Bench, new_bench
from tests.server.engine.parts import GREEDY, tokens


def test_limit_on_output_tokens_is_said(bench: Bench) -> None:
    (cut,) = bench.submit(9, options=DecodingOptions(beam_size=1, max_output_tokens=2))

    bench.step(2)

    (hypothesis,) = cut.result(0).hypotheses
    assert hypothesis.ids == tokens(2)
    assert hypothesis.finish_reason is FinishReason.LENGTH


def test_by_default_a_translation_has_at_most_twice_the_source_tokens_and_16(bench: Bench) -> None:
    (cut,) = bench.submit(99)  # of three source tokens

    bench.step(22)

    (hypothesis,) = cut.result(0).hypotheses
    assert hypothesis.ids == tokens(22)
    assert hypothesis.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({"max_length_ratio": 1.0}, 3),  # of three source tokens
        ({"max_length_ratio": 2.0, "max_output_tokens": 4}, 4),
        ({"target_prefix": (FIRST_TOKEN,) * 2}, 2 + 22),
        ({"target_prefix": (FIRST_TOKEN,) * 5, "max_length_ratio": 1.0}, 5 + 3),  # a few behind the prefix
    ],
)
def test_other_limits_are_of_the_source_and_of_what_is_given(
    bench: Bench, options: dict[str, Any], number: int
) -> None:
    (cut,) = bench.submit(99, options=DecodingOptions(beam_size=1, **options))

    bench.step(number)

    (hypothesis,) = cut.result(0).hypotheses
    assert len(hypothesis.ids) == number
    assert hypothesis.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("most", [{"max_output_tokens": 1}, {"max_output_tokens": 2}, {"max_length_ratio": 0.3}])
def test_alternatives_have_room_for_what_follows_and_harm_no_neighbour(bench: Bench, most: dict[str, Any]) -> None:
    options = DecodingOptions(beam_size=2, num_hypotheses=2, return_alternatives=True, with_tokens=True, **most)
    (neighbour,) = bench.submit(9)
    (asked,) = bench.submit(9, options=options)

    bench.step(11)

    assert neighbour.result(0).hypotheses[0].ids == tokens(9)
    first, second = asked.result(0).hypotheses
    assert first.ids[0] != second.ids[0]
    assert {len(first.ids), len(second.ids)} == {3}


def test_what_the_engine_holds_is_told(bench: Bench) -> None:
    bench.submit(*[5] * 12)

    bench.step()

    assert (bench.sample("lane_rows"), bench.sample("lane_rows_used")) == (8, 8)
    assert (bench.sample("queue_depth"), bench.sample("queue_tokens")) == (4, 4 * 3)
    assert bench.sample("kv_cache_bytes") == bench.engine.lanes[0].cache_bytes > 0


def test_lanes_are_told_from_the_start_by_their_state(manifest: Manifest) -> None:
    bench = new_bench(manifest, num_lanes=3)
    found = [bench.sample("lanes", state="serving")]

    bench.runner.step_failures = [RuntimeError("broken")]
    bench.submit(1)
    bench.step()
    bench.engine.lanes[1].take_out()

    assert [*found, *(bench.sample("lanes", state=state) for state in LANE_STATES)] == [3, 1, 1, 1]


def test_an_engine_is_idle_when_nothing_waits_or_runs(bench: Bench) -> None:
    assert bench.engine.is_idle
    bench.submit(1)
    assert not bench.engine.is_idle
    bench.step()
    assert not bench.engine.is_idle
    bench.step()
    assert bench.engine.is_idle


def test_full_queue_refuses_a_request_whole(manifest: Manifest) -> None:
    bench = new_bench(manifest, max_waiting_sentences=2)
    bench.submit(1)
    bench.submit(1)

    with pytest.raises(Overloaded, match="limit 2"):
        bench.submit(1)

    assert bench.sample("queue_depth") == 2


def test_full_queue_says_so_before_a_request_is_made(manifest: Manifest) -> None:
    bench = new_bench(manifest, max_waiting_sentences=1)
    few, many = (bench.engine.check_room([number], GREEDY) for number in (1, 500))
    assert 0 < few < many  # seconds
    bench.submit(1)

    with pytest.raises(Overloaded):
        bench.engine.check_room([1], GREEDY)


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


def test_two_engines_share_the_metrics_and_neither_hides_the_other(manifest: Manifest) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    first, second, again = (
        Engine(CountingRunner(), manifest, metrics.of_model(name, "1"), engine_limits(), FakeClock())
        for name in ("first", "second", "second")
    )
    first.submit([(3, EOS)] * 2, GREEDY)
    for engine in (second, again):
        engine.submit([(3, EOS)], GREEDY)
    first.lanes[0].step()

    def value(name: str, model: str) -> float | None:
        return registry.get_sample_value(f"babelserve_{name}", {"model": model, "version": "1"})

    assert [value("queue_depth", model) for model in ("first", "second")] == [0, 2]  # two engines of one model
    assert [value("lane_rows_used", model) for model in ("first", "second")] == [2, 0]
    assert [value("lane_rows", model) for model in ("first", "second")] == [8, 16]
    assert [value("source_tokens_total", model) for model in ("first", "second")] == [4, 0]
    again.stop()
    assert [value("lane_rows", model) for model in ("first", "second")] == [8, 8]
    second.stop()
    assert value("queue_depth", "second") is None
    first.stop()


def test_a_forced_prefix_counts_among_the_models_tokens_but_not_among_those_asked_for(manifest: Manifest) -> None:
    asked = DecodingOptions(beam_size=1, max_output_tokens=2, forced_prefix=(41, 42))
    bench, small = new_bench(manifest), dataclasses.replace(manifest.limits, max_target_tokens=5)
    narrow = new_bench(dataclasses.replace(manifest, limits=small))
    (cut,) = bench.submit(9, options=asked)
    (full,) = narrow.submit(9, options=dataclasses.replace(asked, max_output_tokens=None))

    bench.step(4)
    narrow.step(5)

    assert cut.result(0).hypotheses[0].ids == tokens(4)[2:]
    assert full.result(0).hypotheses[0].ids == tokens(5)[2:]


def test_the_models_rules_are_kept(manifest: Manifest) -> None:
    forced = dataclasses.replace(manifest, search=SearchDefaults(forced_eos=True))
    bench = new_bench(forced)
    (cut,) = bench.submit(9, options=DecodingOptions(beam_size=1, max_output_tokens=4))

    bench.step(3)

    (hypothesis,) = cut.result(0).hypotheses
    assert (hypothesis.ids, hypothesis.finish_reason) == (tokens(3), FinishReason.LENGTH)
    assert hypothesis.score == pytest.approx(-0.125 * 3 / 4)


def test_a_lane_is_alone_while_no_other_engine_of_the_process_runs_anything(manifest: Manifest) -> None:
    cores = Cores()
    one, other = (new_bench(manifest, cores=cores) for _ in range(2))
    gates = [bench.engine.lanes[0]._gate for bench in (one, other)]
    one.submit(9)
    other.submit(1)
    with gates[0].work():
        one.step()
        with gates[1].work():
            other.step()  # takes its first step
            one.step()
            other.step()  # its sentence ends
        one.step()

    assert one.runner.was_alone == [True, False, True]
    assert other.runner.was_alone == [False, False]


def test_an_engine_may_be_stopped_before_it_starts_and_twice(bench: Bench) -> None:
    (future,) = bench.submit(1)

    bench.engine.stop()
    bench.engine.stop()

    with pytest.raises(NotServing):
        future.result(0)
    assert bench.sample("sentences_total", outcome="error") == 1


def test_sentences_that_run_at_once_are_all_rows_over_the_beam(manifest: Manifest) -> None:
    engine = new_bench(manifest, num_lanes=3).engine  # of eight rows

    assert [engine.most_sentences(DecodingOptions(beam_size=beam)) for beam in (1, 4, 5)] == [24, 6, 4]


def test_running_sentences_tell_the_ids_that_they_have(manifest: Manifest) -> None:
    bench = new_bench(manifest)
    future, other = bench.submit(1)[0], bench.submit(1)[0]
    assert bench.engine.ids_so_far([future]) == {}

    bench.step()
    bench.clock.now += 0.1

    found = bench.engine.ids_so_far([future])
    assert list(found) == [future]
    assert len(found[future]) == 1
    assert not other.done()


def test_many_who_ask_at_once_what_runs_share_one_look(manifest: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, looks = new_bench(manifest), []
    futures = bench.submit(*[5] * 8)
    bench.step()

    def running(lane: Lane) -> list[Sentence]:
        looks.append(lane)
        return [sentence for batch in lane._batches for sentence in batch.sentences]

    monkeypatch.setattr(Lane, "running", property(running))

    found = [bench.engine.ids_so_far([future]) for future in futures]
    bench.step()
    grown = [bench.engine.ids_so_far([future]) for future in futures]

    assert len(looks) == 1
    assert [len(each[future]) for each, future in zip(found, futures, strict=True)] == [1] * 8
    assert [len(each[future]) for each, future in zip(grown, futures, strict=True)] == [2] * 8, "as far as they are"


def test_a_sentence_that_has_ended_since_the_last_look_tells_no_ids(manifest: Manifest) -> None:
    bench = new_bench(manifest)
    (future,) = bench.submit(1)
    bench.step()
    assert bench.engine.ids_so_far([future])
    bench.step()
    assert future.done()

    assert bench.engine.ids_so_far([future]) == {}


def test_a_look_at_what_runs_keeps_no_caller_in_memory(manifest: Manifest) -> None:
    bench = new_bench(manifest)
    (future,) = bench.submit(1)
    bench.step()
    bench.engine.ids_so_far([future])
    bench.step()
    assert future.done()

    gone = weakref.ref(future)
    del future

    assert gone() is None
