"""Log-probabilities of tokens."""

from typing import Any

import pytest

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason
from tests.server.decoding.test_beam_search import BOS, EOS, advance, new_search


def with_tokens(beam_size: int, **options: Any) -> BeamSearch:
    chosen = DecodingOptions(beam_size=beam_size, num_hypotheses=beam_size, with_tokens=True, **options)
    return BeamSearch(chosen, max_tokens=4, bos_id=BOS, eos_id=EOS)


def test_each_hypothesis_has_the_log_probabilities_of_its_own_tokens() -> None:
    search = with_tokens(2)

    advance(search, {7: -0.5, 8: -0.75, 9: -4.0, 10: -5.0})
    advance(search, {11: -1.0, 12: -6.0, 13: -7.0, 14: -8.0}, {EOS: -0.25, 15: -0.5, 16: -7.0, 17: -8.0})
    advance(search, {18: -0.125, 19: -9.0, 20: -9.0, 21: -9.0}, {EOS: -2.0, 22: -9.0, 23: -9.0, 24: -9.0})
    while not search.best() or len(search.best()) < 2:
        advance(search, {EOS: -0.5, 25: -9.0, 26: -9.0, 27: -9.0})

    found = {each.ids: each.log_probs for each in search.best()}
    assert found[(8,)] == (-0.75, -0.25)
    for each in search.best():
        assert each.score == pytest.approx(sum(each.log_probs) / len(each.log_probs))


def test_a_translation_that_a_limit_ends_has_no_log_probability_of_eos() -> None:
    search = with_tokens(1)
    for token in (7, 8, 9, 10):
        advance(search, {token: -0.5})

    (best,) = search.best()
    assert best.finish_reason is FinishReason.LENGTH
    assert best.log_probs == (-0.5,) * 4
    assert new_search().best() == []
