"""What a batch answers, and whom, when something fails."""

import contextlib
import math
from typing import Any

import numpy as np
import pytest

from server.decoding.options import DecodingOptions
from server.engine.batch import Batch
from server.errors import EngineFailed, NotServing, Overloaded
from server.network import DeviceLost, OutOfMemory
from tests.fakes import EOS
from tests.server.engine.parts import GREEDY, Parts, Stepped, decoder_of, enter_and_step, sentence_of, tokens


def test_failed_step_answers_every_sentence_in_it_and_the_next_ones_work(parts: Parts, batch: Batch) -> None:
    first, second = parts.submit(5, 5)
    parts.step(batch)
    parts.runner.step_failures = [RuntimeError("secret")]
    parts.step(batch)

    for future in (first, second):
        with pytest.raises(EngineFailed, match=r"^translation failed$") as caught:
            future.result(0)
        assert caught.value.cause == "secret"
    (after,) = parts.submit(1)
    parts.step(batch, 2)
    assert after.result(0).hypotheses[0].ids == tokens(1)
    assert parts.sample("engine_failures_total") == 1


def test_failed_encoding_spares_the_sentences_that_run(parts: Parts, batch: Batch) -> None:
    (runs,) = parts.submit(3)
    parts.step(batch)
    parts.runner.encode_failures = [RuntimeError("secret")]
    (fails,) = parts.submit(3)
    parts.step(batch, 3)

    with pytest.raises(EngineFailed):
        fails.result(0)
    assert runs.result(0).hypotheses[0].ids == tokens(3)
    assert batch.plan.num_rows == 0


@pytest.mark.parametrize("options", [GREEDY, DecodingOptions(beam_size=2)])
def test_log_probabilities_that_are_not_finite_fail_their_own_sentence_alone(
    parts: Parts, batch: Batch, options: DecodingOptions
) -> None:
    (broken,), (whole,) = parts.submit(3, options=options), parts.submit(3)
    parts.step(batch)
    (sentence,) = (each for each in batch.plan.running if each.future is broken)
    original = decoder_of(batch).step

    def poison_last_row(*arguments: Any, **more: Any) -> Stepped:
        ids, log_probs = original(*arguments, **more)
        log_probs[sentence.rows[-1]] = np.nan
        return ids, log_probs

    decoder_of(batch).step = poison_last_row
    parts.step(batch)
    decoder_of(batch).step = original
    parts.step(batch, 3)

    with pytest.raises(EngineFailed):
        broken.result(0)
    assert whole.result(0).hypotheses[0].ids == tokens(3)


def test_a_row_in_a_gap_that_is_not_finite_is_no_fault(parts: Parts, batch: Batch) -> None:
    (broken,), (whole,) = parts.submit(3), parts.submit(3)
    parts.step(batch)
    original = decoder_of(batch).step

    def poison_first_row(*arguments: Any, **more: Any) -> Stepped:
        ids, log_probs = original(*arguments, **more)
        log_probs[0] = np.nan
        return ids, log_probs

    decoder_of(batch).step = poison_first_row
    decoder_of(batch).padded_rows = lambda num_rows: 4 * math.ceil(num_rows / 4)  # so that gaps stay
    parts.step(batch)
    num_faults = parts.faults.count
    assert (broken.done(), batch.plan.num_rows, batch.plan.end) == (True, 1, 2), "the row of the first one is a gap"
    parts.step(batch)

    assert parts.faults.count == num_faults
    assert not whole.done()


@pytest.mark.parametrize("broken_method", ["advance", "advance_greedily", "best"])
@pytest.mark.parametrize("options", [GREEDY, DecodingOptions(beam_size=2)])
def test_a_search_that_raises_fails_its_own_sentence_alone(
    parts: Parts, batch: Batch, options: DecodingOptions, broken_method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (broken,), (whole,) = parts.submit(3, options=options), parts.submit(3)
    parts.step(batch)
    (sentence,) = (each for each in batch.plan.running if each.future is broken)
    monkeypatch.setattr(sentence.search, broken_method, _raise)
    if broken_method != "best":
        sentence.search.is_greedy = broken_method == "advance_greedily"
    parts.step(batch, 4)

    with pytest.raises(EngineFailed):
        broken.result(0)
    assert whole.result(0).hypotheses[0].ids == tokens(3)
    assert (batch.plan.num_rows, batch.plan.running) == (0, [])


def _raise(*_: object, **__: object) -> None:
    raise IndexError("list assignment index out of range")


def test_faults_are_counted(parts: Parts, batch: Batch) -> None:
    counts = []
    for num_failures in (1, 1, 0):
        parts.submit(3)
        parts.runner.step_failures = [RuntimeError("broken")] * num_failures
        parts.step(batch)
        counts.append(parts.faults.count)

    assert counts == [1, 2, 2]
    assert not parts.faults.has_lost_device


def test_a_lost_device_is_told_and_its_sentences_may_be_sent_again(parts: Parts, batch: Batch) -> None:
    (future,) = parts.submit(3)
    parts.runner.step_failures = [DeviceLost("CUDA failure 700")]

    parts.step(batch)

    assert parts.faults.has_lost_device
    with pytest.raises(NotServing):
        future.result(0)


def test_without_memory_for_a_step_the_newer_half_leaves_and_the_others_take_it_again(
    parts: Parts, batch: Batch
) -> None:
    (first,) = parts.submit(3, options=DecodingOptions(beam_size=2))
    parts.step(batch)
    newer = parts.submit(2, 4, 1)
    parts.runner.step_failures = [OutOfMemory("no memory")]
    parts.step(batch, 6)

    assert [future.result(0).hypotheses[0].ids for future in (first, newer[0])] == [tokens(3), tokens(2)]
    for future in newer[1:]:
        with pytest.raises(Overloaded) as caught:
            future.result(0)
        assert caught.value.reason == "memory"
    assert batch.plan.num_rows == 0


def test_without_memory_to_encode_all_at_once_halves_are_encoded(parts: Parts, batch: Batch) -> None:
    futures = parts.submit(3, 1, 2)
    parts.runner.encode_failures = [OutOfMemory("no memory")] * 2

    parts.step(batch, 4)

    with pytest.raises(Overloaded):
        futures[0].result(0)  # for which, alone, there was none either
    assert [future.result(0).hypotheses[0].ids for future in futures[1:]] == [tokens(1), tokens(2)]


@pytest.mark.parametrize("name", ["arrange", "place", "remove"])
def test_every_sentence_is_answered_even_if_the_plan_is_broken(
    parts: Parts, batch: Batch, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (runs,) = parts.submit(3)
    parts.step(batch)

    def fail(*arguments: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(batch.plan, name, fail)
    enters = sentence_of((2, 50, EOS))
    parts.dispatch.count([enters], +1)
    parts.runner.step_failures = [RuntimeError("broken")]
    with contextlib.suppress(RuntimeError):
        enter_and_step(batch, [enters], 0.0)

    for future in (runs, enters.future):
        with pytest.raises(EngineFailed):
            future.result(0)
