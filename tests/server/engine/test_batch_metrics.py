"""What a batch measures: times, counts, and whether forecasts held."""

import pytest

from server.decoding.result import Timings
from server.engine.batch import Batch
from server.engine.sentence import Outlook
from tests.fakes import EOS
from tests.server.engine.parts import Parts, sentence_of, step


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

    assert (parts.cost.caution("") > 1.0) == is_late


def test_a_request_is_late_if_any_of_its_sentences_is(parts: Parts, batch: Batch) -> None:
    parts.submit(1, 5, 2)
    step(batch)
    outlook = Outlook(seconds=1.0, num_left=3)
    for sentence in batch.sentences:
        sentence.outlook = outlook
    step(batch, 2)
    assert (outlook.num_left, parts.cost.caution("")) == (1, 1.0)

    parts.clock.now = 1.5
    step(batch, 3)

    assert parts.cost.caution("") > 1.0
