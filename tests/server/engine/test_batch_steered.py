"""Sentences that want whole rows of logits, in a batch with others, over a fake network."""

import dataclasses
from typing import Any

import pytest

from server.decoding.options import DecodingOptions, Sampling
from server.engine.batch import Batch
from server.errors import EngineFailed
from tests.fakes import EOS, FIRST_TOKEN
from tests.server.engine.parts import GREEDY, Parts, decoder_of, tokens

# Of the fake's logits the step's best token has the highest, and of the others the lowest token. So the lowest that is
# not banned takes the place of the first two, and of the third, since it is 12, too.
BANNED = (0, 1, 2, 4, FIRST_TOKEN, FIRST_TOKEN + 1, FIRST_TOKEN + 2, *range(100, 200))
UNIQUE = dataclasses.replace(
    GREEDY, no_repeat_ngram_size=1, suppressed=tuple((token,) for token in BANNED), min_output_tokens=2
)


def test_a_steered_sentence_is_taken_beside_others(parts: Parts, batch: Batch) -> None:
    (steered,) = parts.submit(3, options=UNIQUE)
    (plain,) = parts.submit(3)
    (beam,) = parts.submit(3, options=DecodingOptions(beam_size=2))
    (given,) = parts.submit(3, options=dataclasses.replace(GREEDY, given_targets=((FIRST_TOKEN, EOS),)))
    (steered_beam,) = parts.submit(2, options=dataclasses.replace(UNIQUE, beam_size=2))

    parts.step(batch, 8)

    assert steered.result(0).hypotheses[0].ids == (5, 6), "3 is eos, and banned at first"
    assert steered_beam.result(0).hypotheses[0].ids == (5, 6)
    assert plain.result(0).hypotheses[0].ids == tokens(3)
    assert beam.result(0).hypotheses[0].ids == tokens(3)
    assert given.result(0).hypotheses[0].ids == (FIRST_TOKEN,)
    assert batch.plan.num_rows == 0


def test_a_steered_sentence_feeds_what_it_has_chosen(parts: Parts, batch: Batch) -> None:
    parts.submit(3, options=UNIQUE)

    parts.step(batch, 3)

    assert [fed[0] for fed in parts.runner.fed[1:]] == [5, 6]


@pytest.mark.parametrize("sampling", [None, Sampling(top_k=1)])
def test_sentences_without_scores_are_steered_by_logits_unless_they_draw(
    parts: Parts, batch: Batch, sampling: Sampling | None
) -> None:
    (steered,) = parts.submit(3, options=dataclasses.replace(UNIQUE, with_scores=False, sampling=sampling))

    parts.step(batch, 3)

    assert steered.result(0).hypotheses[0].ids == (5, 6)
    assert parts.runner.had_log_probs == [sampling is not None] * 3


def test_steered_sentences_that_fail_fail_alone(parts: Parts, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("broken")

    (plain,) = parts.submit(3)
    (steered,) = parts.submit(3, options=UNIQUE)
    parts.step(batch)
    monkeypatch.setattr(decoder_of(batch), "logits", fail)

    parts.step(batch, 3)

    assert plain.result(0).hypotheses[0].ids == tokens(3)
    with pytest.raises(EngineFailed):
        steered.result(0)
    assert batch.plan.num_rows == 0
