"""Targets that are given, in a batch over a fake network."""

import dataclasses
from typing import Any

import pytest

from server.decoding.options import DecodingOptions
from server.engine.batch import Batch
from server.errors import EngineFailed
from tests.fakes import EOS, FIRST_TOKEN
from tests.server.engine.parts import BOS, Parts, decoder_of, tokens

GIVEN = DecodingOptions(beam_size=1, with_tokens=True)


def given(*ids: int, prefix: tuple[int, ...] = ()) -> DecodingOptions:
    return dataclasses.replace(GIVEN, given_targets=((*ids, EOS),), forced_prefix=prefix)


def test_a_given_target_is_taken_beside_others_and_has_its_log_probabilities(parts: Parts, batch: Batch) -> None:
    (scored,) = parts.submit(3, options=given(FIRST_TOKEN, FIRST_TOKEN + 3))
    (greedy,) = parts.submit(3)
    (beam,) = parts.submit(3, options=DecodingOptions(beam_size=2, with_tokens=True))

    while not (scored.done() and greedy.done() and beam.done()):
        parts.step(batch)

    best = scored.result(0).hypotheses[0]
    assert best.ids == (FIRST_TOKEN, FIRST_TOKEN + 3)
    assert best.log_probs == (-0.125, *(-20 - token / 8 for token in (FIRST_TOKEN + 3, EOS))), "the first is the best"
    assert best.score == pytest.approx(sum(best.log_probs) / 3)
    assert parts.runner.fed[2][0] == FIRST_TOKEN + 3, "the given token, not the best one"
    assert greedy.result(0).hypotheses[0].log_probs == ()
    assert beam.result(0).hypotheses[0].log_probs == (-0.125,) * 4
    assert batch.plan.num_rows == 0


def test_a_given_target_begins_behind_its_prefix(parts: Parts, batch: Batch) -> None:
    (scored,) = parts.submit(3, options=given(FIRST_TOKEN + 4, prefix=(41, 42)))

    parts.step(batch, 4)

    best = scored.result(0).hypotheses[0]
    assert best.ids == (FIRST_TOKEN + 4,)
    assert best.log_probs == (-20 - (FIRST_TOKEN + 4) / 8, -0.125), "eos is the best by then"
    assert best.score == pytest.approx(sum(best.log_probs) / 4)
    assert [fed[0] for fed in parts.runner.fed] == [BOS, 41, 42, FIRST_TOKEN + 4]


def test_a_score_that_fails_fails_alone(parts: Parts, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("broken")

    (plain,) = parts.submit(3)
    (scored,) = parts.submit(3, options=given(FIRST_TOKEN, FIRST_TOKEN))
    parts.step(batch)
    monkeypatch.setattr(decoder_of(batch), "logits", fail)

    parts.step(batch, 3)

    assert plain.result(0).hypotheses[0].ids == tokens(3)
    with pytest.raises(EngineFailed):
        scored.result(0)
    assert batch.plan.num_rows == 0
