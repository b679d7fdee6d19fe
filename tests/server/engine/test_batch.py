"""A batch over a fake network, stepped by hand."""

import contextlib
import dataclasses
from typing import Any

import numpy as np
import pytest

from server.decoding.options import DecodingOptions
from server.decoding.result import Timings
from server.engine.batch import Batch
from server.engine.limits import Footprint
from server.engine.sentence import Outlook
from server.errors import DeadlineExceeded, EngineFailed, NotServing, Overloaded
from server.network import DeviceLost, OutOfMemory, StepKind
from tests.fakes import EOS
from tests.server.engine.parts import BOS, GREEDY, NO_SCORES, SHORTLIST, Parts, Stepped, decoder_of, sentence_of, tokens


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def batch(parts: Parts) -> Batch:
    return parts.open_batch()


def step(batch: Batch, times: int = 1) -> None:
    """Takes steps with a batch that is its lane's only one."""
    for _ in range(times):
        batch.step(Footprint())


def test_each_sentence_leaves_when_it_is_done(parts: Parts, batch: Batch) -> None:
    short, long = parts.submit(1, 4)

    step(batch, 2)
    assert short.result(0).hypotheses[0].ids == tokens(1)
    assert not long.done()

    step(batch, 3)
    assert long.result(0).hypotheses[0].ids == tokens(4)
    assert batch.num_rows == 0


def test_newcomer_joins_between_two_steps(parts: Parts, batch: Batch) -> None:
    (first,) = parts.submit(5)
    step(batch, 3)
    (second,) = parts.submit(1)
    step(batch, 2)

    assert second.result(0).hypotheses[0].ids == tokens(1)
    assert not first.done()
    step(batch)
    assert first.result(0).hypotheses[0].ids == tokens(5)


def test_greedy_and_beams_share_a_step(parts: Parts, batch: Batch) -> None:
    (greedy,) = parts.submit(3)
    (beam,) = parts.submit(3, options=DecodingOptions(beam_size=4, num_hypotheses=3))

    step(batch)
    assert batch.num_rows == 1 + 1
    step(batch)
    assert batch.num_rows == 1 + 4
    while not beam.done():
        step(batch)

    assert greedy.result(0).hypotheses[0].ids == tokens(3)
    assert beam.result(0).hypotheses[0].ids == tokens(3)
    assert len(beam.result(0).hypotheses) == 3


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_step_mixes_languages_and_those_without(parts: Parts, batch: Batch, beam_size: int) -> None:
    prefixes = [(), (41,), (42, 43), (44,)]

    futures = [
        parts.submit(5, options=DecodingOptions(beam_size=beam_size, forced_prefix=prefix))[0] for prefix in prefixes
    ]
    step(batch, 2)
    assert parts.runner.fed[0] == [BOS] * 4
    assert parts.runner.fed[1][1:4] == [41, 42, 44]
    while not all(future.done() for future in futures):
        step(batch)

    best = [future.result(0).hypotheses[0] for future in futures]
    assert [each.ids for each in best] == [tokens(5)[len(prefix) :] for prefix in prefixes]
    assert [each.score for each in best] == pytest.approx([-0.125 * (6 - len(prefix)) / 6 for prefix in prefixes])


def test_greedy_search_without_scores_is_spared_the_softmax(parts: Parts, batch: Batch) -> None:
    futures = parts.submit(1, 3, options=NO_SCORES)

    step(batch, 4)

    assert [future.result(0).hypotheses[0].ids for future in futures] == [tokens(1), tokens(3)]
    assert [future.result(0).hypotheses[0].score for future in futures] == [0.0, 0.0]
    assert parts.runner.had_log_probs == [False] * 4


@pytest.mark.parametrize("options", [GREEDY, dataclasses.replace(GREEDY, beam_size=2, with_scores=False)])
def test_a_step_has_log_probabilities_while_anyone_needs_them(
    parts: Parts, batch: Batch, options: DecodingOptions
) -> None:
    (spared,) = parts.submit(9, options=NO_SCORES)
    step(batch)
    (scored,) = parts.submit(1, options=options)
    while not scored.done():
        step(batch)
    num_scored = parts.runner.num_steps - 1
    step(batch, 9 - num_scored)

    assert parts.runner.had_log_probs == [False, *[True] * num_scored, *[False] * (9 - num_scored)]
    assert spared.result(0).hypotheses[0].ids == tokens(9)
    assert spared.result(0).hypotheses[0].score == 0.0
    assert scored.result(0).hypotheses[0].ids == tokens(1)
    assert scored.result(0).hypotheses[0].score == pytest.approx(-0.125)


def test_cancelled_sentence_is_gone_by_the_next_step(parts: Parts, batch: Batch) -> None:
    leaves, stays = parts.submit(5, 5)
    step(batch)

    leaves.cancel()
    step(batch)

    assert batch.num_rows == 1
    assert parts.sample("sentences_total", outcome="cancelled") == 1
    assert parts.sample("wasted_tokens_total", outcome="cancelled") == 1
    step(batch, 4)
    assert stays.result(0).hypotheses[0].ids == tokens(5)


def test_sentence_cancelled_during_its_last_step_does_no_harm(parts: Parts, batch: Batch) -> None:
    leaves, stays = parts.submit(1, 2)
    step(batch)
    original = decoder_of(batch).step

    def cancel_meanwhile(*arguments: Any, **options: Any) -> Stepped:
        leaves.cancel()
        stepped: Stepped = original(*arguments, **options)
        return stepped

    decoder_of(batch).step = cancel_meanwhile
    step(batch, 2)

    assert stays.result(0).hypotheses[0].ids == tokens(2)
    assert parts.sample("sentences_total", outcome="cancelled") == 1
    assert parts.sample("wasted_tokens_total", outcome="cancelled") == 2
    assert parts.sample("generated_tokens_total") == 3


def test_expired_sentence_never_starts_a_step(parts: Parts, batch: Batch) -> None:
    (expired,) = parts.submit(5, deadline=1.0)
    parts.clock.now = 1.0

    step(batch)

    with pytest.raises(DeadlineExceeded):
        expired.result(0)
    assert parts.runner.num_steps == 0
    assert parts.sample("sentences_total", outcome="deadline") == 1


def test_sentence_that_expires_while_it_runs_is_answered(parts: Parts, batch: Batch) -> None:
    expires, stays = parts.submit(5, deadline=1.0)[0], parts.submit(5)[0]
    step(batch, 2)
    parts.clock.now = 2.0
    step(batch, 4)

    with pytest.raises(DeadlineExceeded):
        expires.result(0)
    assert stays.result(0).hypotheses[0].ids == tokens(5)


def test_failed_step_answers_every_sentence_in_it_and_the_next_ones_work(parts: Parts, batch: Batch) -> None:
    first, second = parts.submit(5, 5)
    step(batch)
    parts.runner.step_failures = [RuntimeError("secret")]
    step(batch)

    for future in (first, second):
        with pytest.raises(EngineFailed, match=r"^translation failed$"):
            future.result(0)
    (after,) = parts.submit(1)
    step(batch, 2)
    assert after.result(0).hypotheses[0].ids == tokens(1)
    assert parts.sample("engine_failures_total") == 1


def test_failed_encoding_spares_the_sentences_that_run(parts: Parts, batch: Batch) -> None:
    (runs,) = parts.submit(3)
    step(batch)
    parts.runner.encode_failures = [RuntimeError("secret")]
    (fails,) = parts.submit(3)
    step(batch, 3)

    with pytest.raises(EngineFailed):
        fails.result(0)
    assert runs.result(0).hypotheses[0].ids == tokens(3)
    assert batch.num_rows == 0


@pytest.mark.parametrize("options", [GREEDY, DecodingOptions(beam_size=2)])
def test_log_probabilities_that_are_not_finite_fail_their_own_sentence_alone(
    parts: Parts, batch: Batch, options: DecodingOptions
) -> None:
    (broken,), (whole,) = parts.submit(3, options=options), parts.submit(3)
    step(batch)
    (sentence,) = (each for each in batch._scheduler.running if each.future is broken)
    original = decoder_of(batch).step

    def poison_last_row(*arguments: Any, **more: Any) -> Stepped:
        ids, log_probs = original(*arguments, **more)
        log_probs[sentence.rows[-1]] = np.nan
        return ids, log_probs

    decoder_of(batch).step = poison_last_row
    step(batch)
    decoder_of(batch).step = original
    step(batch, 3)

    with pytest.raises(EngineFailed):
        broken.result(0)
    assert whole.result(0).hypotheses[0].ids == tokens(3)


def test_faults_are_counted(parts: Parts, batch: Batch) -> None:
    counts = []
    for num_failures in (1, 1, 0):
        parts.submit(3)
        parts.runner.step_failures = [RuntimeError("broken")] * num_failures
        step(batch)
        counts.append(batch.num_faults)

    assert counts == [1, 2, 2]
    assert not batch.has_lost_device


def test_a_lost_device_is_told_and_its_sentences_may_be_sent_again(parts: Parts, batch: Batch) -> None:
    (future,) = parts.submit(3)
    parts.runner.step_failures = [DeviceLost("CUDA failure 700")]

    step(batch)

    assert batch.has_lost_device
    with pytest.raises(NotServing):
        future.result(0)


def test_without_memory_for_a_step_the_newer_half_leaves_and_the_others_take_it_again(
    parts: Parts, batch: Batch
) -> None:
    (first,) = parts.submit(3, options=DecodingOptions(beam_size=2))
    step(batch)
    newer = parts.submit(2, 4, 1)
    parts.runner.step_failures = [OutOfMemory("no memory")]
    step(batch, 6)

    assert [future.result(0).hypotheses[0].ids for future in (first, newer[0])] == [tokens(3), tokens(2)]
    for future in newer[1:]:
        with pytest.raises(Overloaded) as caught:
            future.result(0)
        assert caught.value.reason == "memory"
    assert parts.sample("queue_rejected_total", reason="memory") == 1
    assert batch.num_rows == 0


def test_without_memory_to_encode_all_at_once_halves_are_encoded(parts: Parts, batch: Batch) -> None:
    futures = parts.submit(3, 1, 2)
    parts.runner.encode_failures = [OutOfMemory("no memory")] * 2

    step(batch, 4)

    with pytest.raises(Overloaded):
        futures[0].result(0)  # for which, alone, there was none either
    assert [future.result(0).hypotheses[0].ids for future in futures[1:]] == [tokens(1), tokens(2)]


def test_probes_enter_instead_of_those_that_wait(parts: Parts, batch: Batch) -> None:
    (waits,) = parts.submit(1)
    probe = sentence_of((2, 50, EOS))

    batch.step(Footprint(), [probe])
    batch.step(Footprint(), [])
    assert parts.queue._running_rows == 1
    batch.step(Footprint(), [])

    assert probe.future.result(0).hypotheses[0].ids == tokens(2)
    assert not waits.done()
    assert parts.queue._running_rows == 0


@pytest.mark.parametrize("name", ["schedule", "remove"])
def test_every_sentence_is_answered_even_if_the_scheduler_is_broken(
    parts: Parts, batch: Batch, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (runs,) = parts.submit(3)
    step(batch)

    def fail(*arguments: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(batch._scheduler, name, fail)
    probe = sentence_of((2, 50, EOS))
    parts.runner.step_failures = [RuntimeError("broken")]
    with contextlib.suppress(RuntimeError):
        batch.step(Footprint(), [probe])

    for future in (runs, probe.future):
        with pytest.raises(EngineFailed):
            future.result(0)


def test_timings_are_the_clocks(parts: Parts, batch: Batch) -> None:
    (future,) = parts.submit(1)
    parts.clock.now = 2.0
    step(batch)
    parts.clock.now = 5.0
    step(batch)

    result = future.result(0)
    assert result.timings == Timings(queue_seconds=2.0, encode_seconds=0.0, decode_seconds=3.0)


def test_metrics_count_tokens_and_padding(parts: Parts, batch: Batch) -> None:
    parts.queue.add([sentence_of((2, EOS)), sentence_of((2, 50, 50, EOS))])

    step(batch, 3)

    assert parts.sample("source_tokens_total") == 2 + 4
    assert parts.sample("padded_source_tokens_total") == 2 * 4
    assert parts.sample("generated_tokens_total") == 2 * 3
    assert parts.sample("sentences_total", outcome="ok") == 2
    assert batch.cache_bytes > 0


def test_metrics_count_steps_and_their_rows(parts: Parts, batch: Batch) -> None:
    parts.submit(1, 3)

    step(batch, 4)

    assert parts.sample("step_duration_seconds_count") == 4
    assert parts.sample("batch_rows_sum") == 2 + 2 + 1 + 1
    assert parts.sample("encode_duration_seconds_count") == 1
    assert parts.sample("queue_duration_seconds_count") == 2


def test_other_batches_of_its_lane_leave_it_less_room(parts: Parts, batch: Batch) -> None:
    parts.submit(*[3] * 8)

    batch.step(Footprint(rows=6, cache_rows=12, positions=36))
    assert batch.footprint.rows == 2
    batch.step(Footprint(rows=1, cache_rows=2, positions=6))
    assert batch.footprint.rows == 7


def test_other_batches_of_its_lane_do_not_keep_it_from_being_alone(parts: Parts, batch: Batch) -> None:
    other = parts.open_batch(StepKind.SHORTLIST)
    parts.submit(3)
    parts.submit(3, options=SHORTLIST)
    batch.step(other.footprint)  # while one waits for the other batch

    other.step(batch.footprint)
    batch.step(other.footprint)

    assert parts.runner.was_alone == [False, True, True]


def test_dropped_sentences_are_answered_and_free_their_rows(parts: Parts, batch: Batch) -> None:
    left, *others = parts.submit(5, 5, 5)
    step(batch)
    left.cancel()

    batch.drop(NotServing("the server has shut down"))

    for future in others:
        with pytest.raises(NotServing):
            future.result(0)
    assert (batch.num_rows, batch.footprint) == (0, Footprint())
    assert parts.sample("sentences_total", outcome="error") == 2
    assert parts.sample("sentences_total", outcome="cancelled") == 1


@pytest.mark.parametrize(("left_at", "is_late"), [(0.5, False), (1.5, True)])
def test_a_caller_who_leaves_later_than_forecast_teaches_caution(
    parts: Parts, batch: Batch, left_at: float, is_late: bool
) -> None:
    (future,) = parts.submit(5)
    step(batch)
    (sentence,) = batch.sentences
    sentence.outlook = Outlook(seconds=1.0, num_left=1)

    parts.clock.now = left_at
    future.cancel()
    step(batch)

    assert (parts.cost.caution > 1.0) == is_late


def test_a_request_is_late_if_any_of_its_sentences_is(parts: Parts, batch: Batch) -> None:
    parts.submit(1, 5, 2)
    step(batch)
    outlook = Outlook(seconds=1.0, num_left=3)
    for sentence in batch.sentences:
        sentence.outlook = outlook
    step(batch, 2)
    assert (outlook.num_left, parts.cost.caution) == (1, 1.0)

    parts.clock.now = 1.5
    step(batch, 3)

    assert parts.cost.caution > 1.0
