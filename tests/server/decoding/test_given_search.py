"""Targets that are given."""

import pytest

from server.decoding.given_search import GivenSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason
from tests.server.decoding.test_beam_search import BOS, EOS


def test_a_given_target_is_asked_for_token_by_token() -> None:
    options = DecodingOptions(beam_size=1, with_tokens=True, given_targets=((7, 8, EOS),), forced_prefix=(5,))
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
    options = DecodingOptions(beam_size=1, given_targets=((*[7] * 20, EOS),), end_loops=True)
    search = GivenSearch(options, max_tokens=30, bos_id=BOS, eos_id=EOS, source_ids=(9, EOS))

    while search.advance([[9]], [[-1.0]], [-0.25]):
        pass

    assert search.best()[0].ids == (7,) * 20


def test_targets_that_begin_alike_share_a_beam_until_they_differ() -> None:
    targets = ((7, 8, EOS), (7, 9, 8, EOS), (7, 9, 9, EOS))
    search = GivenSearch(
        DecodingOptions(beam_size=3, num_hypotheses=3, given_targets=targets), max_tokens=9, bos_id=BOS, eos_id=EOS
    )
    asked, parents = [search.wanted], []
    for log_probs in ([-1.0], [-2.0, -0.5], [-0.25, -4.0, -0.125], [-0.5, -0.25]):
        parents.append(search.advance([[1]] * len(search.last_ids), [[0.0]] * len(search.last_ids), log_probs))
        asked.append(search.wanted)

    assert search.top_k == 1
    assert asked == [[(0, 7)], [(0, 8), (0, 9)], [(0, EOS), (1, 8), (1, 9)], [(0, EOS), (1, EOS)], []]
    assert parents == [[0], [0, 0], [1, 1], []]
    scores = {each.ids: each.score for each in search.best()}
    assert scores == pytest.approx({(7, 9, 9): -1.875 / 4, (7, 8): -3.25 / 3, (7, 9, 8): -6.0 / 4})
    assert [each.ids for each in search.best()] == [(7, 9, 9), (7, 8), (7, 9, 8)]


def test_a_target_with_more_tokens_does_not_win_by_them() -> None:
    """The longer one has the better score, which is a mean."""
    options = DecodingOptions(beam_size=2, given_targets=((7, EOS), (8, 9, 9, EOS)))
    search = GivenSearch(options, max_tokens=9, bos_id=BOS, eos_id=EOS)
    for log_probs in ([-2.0, -2.0], [-0.25, -0.5], [0.0], [0.0]):
        search.advance([[1]] * len(search.last_ids), [[0.0]] * len(search.last_ids), log_probs)

    assert [each.ids for each in search.best()] == [(7,)]
    assert search.finished[0].score < search.finished[1].score
