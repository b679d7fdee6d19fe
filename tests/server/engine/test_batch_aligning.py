"""How a batch aligns finished sentences: a few together, which hold no rows meanwhile."""

import dataclasses
from typing import Any

import pytest

from server.decoding.options import DecodingOptions
from server.engine.batch import Batch
from server.errors import EngineFailed, NotServing, Overloaded
from server.network import OutOfMemory
from tests.fakes import FIRST_TOKEN
from tests.server.engine.parts import Parts, decoder_of, tokens

ALIGNED = DecodingOptions(beam_size=1, with_alignment=True)


def test_a_sentence_that_asks_for_it_comes_with_what_it_has_attended_to(parts: Parts, batch: Batch) -> None:
    (plain,) = parts.submit(3)
    (aligned,) = parts.submit(3, options=ALIGNED)

    parts.step(batch, 4)

    assert plain.result(0).attention is None
    attention = aligned.result(0).attention
    assert attention is not None
    assert attention.tolist() == [[0.0, 1.0, 0.0]] * 3, "of three tokens, by the second slot"


def test_what_is_forced_has_no_attention(parts: Parts, batch: Batch) -> None:
    (aligned,) = parts.submit(3, options=dataclasses.replace(ALIGNED, forced_prefix=(FIRST_TOKEN,)))

    parts.step(batch, 4)

    result = aligned.result(0)
    assert result.attention is not None
    assert result.attention.shape == (len(result.hypotheses[0].ids), 3) == (2, 3)


def test_a_beam_is_aligned_by_its_best_hypothesis(parts: Parts, batch: Batch) -> None:
    (aligned,) = parts.submit(3, options=dataclasses.replace(ALIGNED, beam_size=4))

    while not aligned.done():
        parts.step(batch)

    result = aligned.result(0)
    assert result.attention is not None
    assert len(result.attention) == len(result.hypotheses[0].ids)


def test_an_alignment_that_fails_fails_alone(parts: Parts, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("broken")

    (plain,) = parts.submit(3)
    (aligned,) = parts.submit(3, options=ALIGNED)
    parts.step(batch)
    monkeypatch.setattr(decoder_of(batch), "align", fail)

    parts.step(batch, 3)

    assert plain.result(0).hypotheses[0].ids == tokens(3)
    with pytest.raises(EngineFailed):
        aligned.result(0)
    assert batch.plan.num_rows == 0


def test_finished_sentences_are_aligned_together_and_hold_no_rows(
    parts: Parts, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = parts.submit(1, 3, options=ALIGNED)
    (plain,) = parts.submit(5)
    parts.step(batch)
    sizes: list[int] = []
    original = decoder_of(batch).align

    def align(sources: Any, *arguments: Any) -> Any:
        sizes.append(len(sources))
        return original(sources, *arguments)

    monkeypatch.setattr(decoder_of(batch), "align", align)

    parts.step(batch)
    assert (first.done(), batch.plan.num_rows, len(batch.sentences)) == (False, 2, 3)
    parts.step(batch, 2)
    assert (first.done(), second.done(), plain.done()) == (True, True, False)
    assert sizes == [2]
    assert first.result(0).attention is not None


@pytest.mark.parametrize("keeps_sources", [True, False])
def test_a_lane_that_hangs_while_it_aligns_knows_each_sentence_once(
    parts: Parts, batch: Batch, monkeypatch: pytest.MonkeyPatch, keeps_sources: bool
) -> None:
    monkeypatch.setattr(type(decoder_of_new(parts, batch)), "keeps_sources", keeps_sources)
    (aligned,) = parts.submit(1, options=ALIGNED)
    parts.step(batch)
    known: list[Any] = []
    original = decoder_of(batch).align

    def align(*arguments: Any) -> Any:
        known.extend(sentence.future for sentence in batch.sentences)  # to which `Lane.abandon` would answer
        return original(*arguments)

    monkeypatch.setattr(decoder_of(batch), "align", align)

    parts.step(batch)

    assert known == [aligned]
    assert (aligned.done(), batch.sentences) == (True, [])


def test_a_sentence_that_waits_is_aligned_when_no_other_is_left(parts: Parts, batch: Batch) -> None:
    first, second = parts.submit(1, 9, options=ALIGNED)
    parts.step(batch, 2)
    second.cancel()

    parts.step(batch)

    assert first.result(0).attention is not None
    assert batch.sentences == []


def test_no_memory_for_the_others_leaves_none_waiting(parts: Parts, batch: Batch) -> None:
    first, second = parts.submit(1, 9, options=ALIGNED)
    parts.step(batch, 2)
    parts.runner.step_failures = [OutOfMemory("secret")]

    parts.step(batch)

    with pytest.raises(Overloaded):
        second.result(0)
    assert first.result(0).attention is not None
    assert batch.sentences == []


def test_a_step_that_fails_and_a_stop_answer_those_that_wait(parts: Parts, batch: Batch) -> None:
    for error in (EngineFailed, NotServing):
        first, second = parts.submit(1, 9, options=ALIGNED)
        parts.step(batch, 2)
        if error is EngineFailed:
            parts.runner.step_failures = [RuntimeError("secret")]
            parts.step(batch)
        else:
            batch.drop(NotServing("the server has shut down"), batch.sentences)

        for future in (first, second):
            with pytest.raises(error):
                future.result(0)
        assert batch.sentences == []


def test_what_the_device_keeps_in_rows_is_aligned_at_once(
    parts: Parts, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(decoder_of_new(parts, batch)), "keeps_sources", False)
    first, second = parts.submit(1, 9, options=ALIGNED)

    parts.step(batch, 2)

    assert first.result(0).attention is not None
    assert not second.done()


def decoder_of_new(parts: Parts, batch: Batch) -> Any:
    """The decoder of a batch that has taken a step."""
    parts.submit(1)
    parts.step(batch, 2)
    return decoder_of(batch)
