"""A batch over a fake network, stepped by hand."""

import dataclasses
from typing import Any
from unittest.mock import Mock

import pytest

from server.decoding.options import DecodingOptions
from server.engine.batch import Batch
from server.engine.limits import Footprint
from server.errors import DeadlineExceeded, NotServing
from tests.fakes import EOS
from tests.server.engine.parts import (
    BOS,
    GREEDY,
    NO_SCORES,
    Parts,
    Stepped,
    decoder_of,
    enter_and_step,
    sentence_of,
    tokens,
)


def test_each_sentence_leaves_when_it_is_done(parts: Parts, batch: Batch) -> None:
    short, long = parts.submit(1, 4)

    parts.step(batch, 2)
    assert short.result(0).hypotheses[0].ids == tokens(1)
    assert not long.done()

    parts.step(batch, 3)
    assert long.result(0).hypotheses[0].ids == tokens(4)
    assert batch.plan.num_rows == 0


def test_newcomer_joins_between_two_steps(parts: Parts, batch: Batch) -> None:
    (first,) = parts.submit(5)
    parts.step(batch, 3)
    (second,) = parts.submit(1)
    parts.step(batch, 2)

    assert second.result(0).hypotheses[0].ids == tokens(1)
    assert not first.done()
    parts.step(batch)
    assert first.result(0).hypotheses[0].ids == tokens(5)


def test_greedy_and_beams_share_a_step(parts: Parts, batch: Batch) -> None:
    (greedy,) = parts.submit(3)
    (beam,) = parts.submit(3, options=DecodingOptions(beam_size=4, num_hypotheses=3))

    parts.step(batch)
    assert batch.plan.num_rows == 1 + 1
    parts.step(batch)
    assert batch.plan.num_rows == 1 + 4
    while not beam.done():
        parts.step(batch)

    assert greedy.result(0).hypotheses[0].ids == tokens(3)
    assert beam.result(0).hypotheses[0].ids == tokens(3)
    assert len(beam.result(0).hypotheses) == 3


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_step_mixes_languages_and_those_without(parts: Parts, batch: Batch, beam_size: int) -> None:
    prefixes = [(), (41,), (42, 43), (44,)]

    futures = [
        parts.submit(5, options=DecodingOptions(beam_size=beam_size, forced_prefix=prefix))[0] for prefix in prefixes
    ]
    parts.step(batch, 2)
    assert parts.runner.fed[0] == [BOS] * 4
    assert parts.runner.fed[1][1:4] == [41, 42, 44]
    while not all(future.done() for future in futures):
        parts.step(batch)

    best = [future.result(0).hypotheses[0] for future in futures]
    assert [each.ids for each in best] == [tokens(5)[len(prefix) :] for prefix in prefixes]
    assert [each.score for each in best] == pytest.approx([-0.125 * (6 - len(prefix)) / 6 for prefix in prefixes])


def test_greedy_search_without_scores_is_spared_the_softmax(parts: Parts, batch: Batch) -> None:
    futures = parts.submit(1, 3, options=NO_SCORES)

    parts.step(batch, 4)

    assert [future.result(0).hypotheses[0].ids for future in futures] == [tokens(1), tokens(3)]
    assert [future.result(0).hypotheses[0].score for future in futures] == [0.0, 0.0]
    assert parts.runner.had_log_probs == [False] * 4


@pytest.mark.parametrize("options", [GREEDY, dataclasses.replace(GREEDY, beam_size=2, with_scores=False)])
def test_a_step_has_log_probabilities_while_anyone_needs_them(
    parts: Parts, batch: Batch, options: DecodingOptions
) -> None:
    (spared,) = parts.submit(9, options=NO_SCORES)
    parts.step(batch)
    (scored,) = parts.submit(1, options=options)
    while not scored.done():
        parts.step(batch)
    num_scored = parts.runner.num_steps - 1
    parts.step(batch, 9 - num_scored)

    assert parts.runner.had_log_probs == [False, *[True] * num_scored, *[False] * (9 - num_scored)]
    assert spared.result(0).hypotheses[0].ids == tokens(9)
    assert spared.result(0).hypotheses[0].score == 0.0
    assert scored.result(0).hypotheses[0].ids == tokens(1)
    assert scored.result(0).hypotheses[0].score == pytest.approx(-0.125)


def test_cancelled_sentence_is_gone_by_the_next_step(parts: Parts, batch: Batch) -> None:
    leaves, stays = parts.submit(5, 5)
    parts.step(batch)

    leaves.cancel()
    parts.step(batch)

    assert batch.plan.num_rows == 1
    assert parts.sample("sentences_total", outcome="cancelled") == 1
    assert parts.sample("wasted_tokens_total", outcome="cancelled") == 1
    parts.step(batch, 4)
    assert stays.result(0).hypotheses[0].ids == tokens(5)


def test_no_running_sentence_is_asked_while_nobody_has_left(
    parts: Parts, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    (running,) = parts.submit(5)
    (other,) = parts.submit(5)
    parts.step(batch)
    cancelled = Mock(return_value=False)
    monkeypatch.setattr(running, "cancelled", cancelled)
    parts.step(batch)
    cancelled.assert_not_called()

    other.cancel()
    parts.step(batch)
    cancelled.assert_called()


def test_a_sentence_whose_caller_left_while_it_waited_never_runs(parts: Parts, batch: Batch) -> None:
    parts.submit(5)
    parts.step(batch)
    (leaves,) = parts.submit(5)
    leaves.cancel()
    batch.step(0.0)  # the batch looks, and the sentence still waits
    parts.step(batch)

    assert parts.sample("sentences_total", outcome="cancelled") == 1
    assert len(batch.sentences) == 1


def test_sentence_cancelled_during_its_last_step_does_no_harm(parts: Parts, batch: Batch) -> None:
    leaves, stays = parts.submit(1, 2)
    parts.step(batch)
    original = decoder_of(batch).step

    def cancel_meanwhile(*arguments: Any, **options: Any) -> Stepped:
        leaves.cancel()
        stepped: Stepped = original(*arguments, **options)
        return stepped

    decoder_of(batch).step = cancel_meanwhile
    parts.step(batch, 2)

    assert stays.result(0).hypotheses[0].ids == tokens(2)
    assert parts.sample("sentences_total", outcome="cancelled") == 1
    assert parts.sample("wasted_tokens_total", outcome="cancelled") == 2
    assert parts.sample("generated_tokens_total") == 3


def test_sentence_that_expires_while_it_runs_is_answered(parts: Parts, batch: Batch) -> None:
    expires, stays = parts.submit(5, deadline=1.0)[0], parts.submit(5)[0]
    parts.step(batch, 2)
    parts.clock.now = 2.0
    parts.step(batch, 4)

    with pytest.raises(DeadlineExceeded):
        expires.result(0)
    assert stays.result(0).hypotheses[0].ids == tokens(5)


def test_who_enters_is_who_was_given_and_others_go_on_waiting(parts: Parts, batch: Batch) -> None:
    (waits,) = parts.submit(1)
    given = sentence_of((2, 50, EOS))
    parts.dispatch.count([given], +1)

    for entering in ([given], [], []):
        assert parts.dispatch._running_rows == 1
        enter_and_step(batch, entering, 0.0)

    assert given.future.result(0).hypotheses[0].ids == tokens(2)
    assert not waits.done()
    assert parts.dispatch._running_rows == 0


def test_a_step_is_told_whether_it_is_all_that_there_is(parts: Parts, batch: Batch) -> None:
    parts.dispatch.count(sentences := [sentence_of((9, 50, EOS))], +1)
    enter_and_step(batch, sentences, 0.0)
    enter_and_step(batch, [], 0.0, is_alone=True)

    assert parts.runner.was_alone == [False, True]


def test_a_batch_says_how_long_its_longest_row_is_and_forgets_it_with_the_last(parts: Parts, batch: Batch) -> None:
    (long,), (short,) = (parts.submit(count) for count in (9, 1))
    lengths = []
    for _ in range(6):
        parts.step(batch)
        lengths.append(max(batch.plan.longest()))
    long.cancel()
    parts.step(batch)

    assert lengths == [3, 3, 3, 4, 5, 6]  # the sources have three tokens; then what has been generated is longer
    assert short.done()
    assert max(batch.plan.longest()) == 0


def test_dropped_sentences_are_answered_and_free_their_rows(parts: Parts, batch: Batch) -> None:
    left, *others = parts.submit(5, 5, 5)
    parts.step(batch)
    left.cancel()

    batch.drop(NotServing("the server has shut down"), batch.sentences)

    for future in others:
        with pytest.raises(NotServing):
            future.result(0)
    assert (batch.plan.num_rows, batch.plan.footprint) == (0, Footprint())
    assert parts.sample("sentences_total", outcome="error") == 2
    assert parts.sample("sentences_total", outcome="cancelled") == 1


def test_sentences_that_left_keep_their_rows_while_a_step_would_compute_as_many(parts: Parts, batch: Batch) -> None:
    parts.runner.padding = 4
    futures = parts.submit(1, 9, 2, 9, 9)

    parts.step(batch, 4)
    assert [len(fed) for fed in parts.runner.fed] == [
        5,
        5,
        4,
        4,
    ]  # a step of 5 computes 8 rows, one of 3 as many as one of 4
    parts.step(batch, 7)

    assert [future.result(0).hypotheses[0].ids for future in futures] == [tokens(n) for n in (1, 9, 2, 9, 9)]


def test_a_row_that_nobody_uses_begins_anew_in_each_step(parts: Parts, batch: Batch) -> None:
    parts.runner.padding = 8
    parts.submit(1, 9)
    parts.step(batch, 6)

    assert batch.plan.end == 2
    inputs = batch.plan.inputs(is_alone=False)
    assert (inputs.past_lengths.tolist(), inputs.source_lengths.tolist()) == ([0, 6], [1, inputs.source_lengths[1]])


def test_sentences_enter_behind_rows_that_nobody_uses_once_these_are_closed(parts: Parts, batch: Batch) -> None:
    parts.runner.padding = 8
    first = parts.submit(1, 9, 1, 9)
    parts.step(batch, 3)
    second = parts.submit(3, 3)
    parts.step(batch, 9)

    assert batch.plan.num_rows == 0
    assert [future.result(0).hypotheses[0].ids for future in first + second] == [tokens(n) for n in (1, 9, 1, 9, 3, 3)]
