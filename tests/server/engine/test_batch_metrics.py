"""What a batch measures: times, counts, and whether forecasts held."""

from typing import Any

from server.engine.batch import Batch
from tests.fakes import EOS
from tests.server.engine.parts import GREEDY, Parts, enter_and_step, new_sentence, sentence_of


def test_metrics_count_tokens_and_padding(parts: Parts, batch: Batch) -> None:
    parts.dispatch.add([sentence_of((2, EOS)), sentence_of((2, 50, 50, EOS))])

    parts.step(batch, 3)

    assert parts.sample("source_tokens_total") == 2 + 4
    assert parts.sample("padded_source_tokens_total") == 2 * 4
    assert parts.sample("generated_tokens_total") == 2 * 3
    assert parts.sample("sentences_total", outcome="ok") == 2
    assert batch.cache_bytes > 0


def test_metrics_count_steps_and_their_rows(parts: Parts, batch: Batch) -> None:
    parts.submit(1, 3)

    parts.step(batch, 4)

    assert parts.sample("step_duration_seconds_count") == 4
    assert parts.sample("batch_rows_sum") == 2 + 2 + 1 + 1
    assert parts.sample("encode_duration_seconds_count") == 1


def test_each_answer_is_compared_with_what_was_forecast_for_its_request(parts: Parts, batch: Batch) -> None:
    parts.submit(1, 3)
    parts.step(batch)
    for sentence in batch.plan.running:
        sentence.forecast_seconds = 2.0

    for parts.clock.now in (1.0, 2.0, 3.0):
        parts.step(batch)

    assert parts.sample("queue_wait_prediction_ratio_count") == 2
    assert parts.sample("queue_wait_prediction_ratio_sum") == 1.0 / 2.0 + 3.0 / 2.0


def test_an_answer_that_did_not_have_to_wait_is_compared_with_nothing(parts: Parts, batch: Batch) -> None:
    parts.submit(1)

    parts.step(batch, 2)

    assert parts.sample("sentences_total", outcome="ok") == 1
    assert parts.sample("queue_wait_prediction_ratio_count") == 0


def test_costs_are_learned_from_steps_with_the_rows_that_beams_will_have(parts: Parts, batch: Batch) -> None:
    seen = []
    parts.cost.observe_step = lambda *step: seen.append(step)  # type: ignore[method-assign]

    def pass_time(*_: Any) -> None:
        parts.clock.now += 0.5

    parts.runner.spoil = pass_time
    parts.dispatch.count(sentences := [new_sentence(beam_size=4), new_sentence()], +1)
    parts.clock.now = 7.0
    enter_and_step(batch, sentences, 6.0)
    enter_and_step(batch, [], 6.0, is_full=True)

    assert seen == [(5, 0.5, None), (5, 0.5, 2.0)]


def test_lengths_are_learned_from_answers(parts: Parts, batch: Batch) -> None:
    parts.submit(5)  # of three source tokens, six steps

    parts.step(batch, 6)

    assert parts.cost.steps(3, GREEDY) == 6.0
