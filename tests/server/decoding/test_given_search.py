"""Targets that are given."""

import pytest

from server.decoding.given_search import GivenSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason
from tests.server.decoding.test_beam_search import BOS, EOS


def test_a_given_target_is_asked_for_token_by_token() -> None:
    options = DecodingOptions(beam_size=1, with_tokens=True, given_target=(7, 8, EOS), forced_prefix=(5,))
    search = GivenSearch(options, max_tokens=4, bos_id=BOS, eos_id=EOS)
    assert (search.wanted, search.is_greedy) == ([], False)

    assert search.advance([[9]], [[-1.0]]) == [0]
    asked = [*search.wanted]
    while search.advance([[9]], [[-1.0]], [-0.25 * len(asked)]):
        asked += search.wanted

    assert asked == [(0, 7), (0, 8), (0, EOS)]
    assert search.wanted == []
    (best,) = search.best()
    assert (best.ids, best.finish_reason, best.log_probs) == ((7, 8), FinishReason.STOP, (-0.25, -0.5, -0.75))
    assert best.score == pytest.approx(-1.5 / 4)


def test_a_given_target_may_repeat_itself() -> None:
    options = DecodingOptions(beam_size=1, given_target=(*[7] * 20, EOS), end_loops=True)
    search = GivenSearch(options, max_tokens=30, bos_id=BOS, eos_id=EOS, source_ids=(9, EOS))

    while search.advance([[9]], [[-1.0]], [-0.25]):
        pass

    assert search.best()[0].ids == (7,) * 20
