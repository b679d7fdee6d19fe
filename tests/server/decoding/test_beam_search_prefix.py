"""Searches whose target begins with given tokens."""

from typing import Any

import pytest

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, SearchRules
from server.decoding.result import FinishReason
from tests.server.decoding.test_beam_search import BOS, EOS, advance, log_probs_after, run

PREFIX = (5, 6)


@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_it_goes_on_as_from_a_forced_prefix_and_the_prefix_is_a_part_of_what_it_finds(
    width: int, early_stopping: bool
) -> None:
    rules, num_compared = SearchRules(early_stopping=early_stopping), 0
    for seed in range(60):
        of_search: dict[str, Any] = {
            "beam_size": width,
            "num_hypotheses": width,
            "length_penalty": (0.0, 0.6, 1.0)[seed % 3],
        }

        found = run(DecodingOptions(target_prefix=PREFIX, **of_search), 9, rules, seed, 0.05)
        expected = run(DecodingOptions(forced_prefix=PREFIX, **of_search), 9, rules, seed, 0.05)

        assert all(each.ids[:2] == PREFIX for each in found)
        first = log_probs_after([BOS, *PREFIX], seed, 0.05)
        if sum(value > first[EOS] for value in first) >= width:  # there is a rule of its own if it may end at once
            num_compared += 1
            assert [each.ids for each in found] == [(*PREFIX, *each.ids) for each in expected], seed
            assert [each.score for each in found] == pytest.approx([each.score for each in expected])
    assert num_compared > 10


@pytest.mark.parametrize("forced_eos", [False, True])
@pytest.mark.parametrize("width", [1, 4])
def test_a_forced_prefix_is_fed_even_if_one_token_may_follow(width: int, forced_eos: bool) -> None:
    options = DecodingOptions(beam_size=width, num_hypotheses=1, forced_prefix=PREFIX)
    rules = SearchRules(forced_eos=forced_eos)
    search = BeamSearch(options, max_tokens=3, bos_id=BOS, eos_id=EOS, rules=rules)

    for expected in PREFIX:
        assert advance(search, dict.fromkeys(range(7, 15), -1.0)) == [0]
        assert search.last_ids == [expected]
    assert not advance(search, {token: -token / 10 for token in range(7, 15)})

    (best,) = search.best()
    assert (best.ids, best.finish_reason) == ((7,), FinishReason.LENGTH)


def test_each_token_of_it_has_the_log_probability_0() -> None:
    options = DecodingOptions(beam_size=1, target_prefix=PREFIX, forced_prefix=(8,), with_tokens=True)
    search = BeamSearch(options, max_tokens=9, bos_id=BOS, eos_id=EOS)

    for expected in (8, 5, 6):
        assert advance(search, {EOS: -0.1}) == [0]
        assert search.last_ids == [expected]
    assert search.is_greedy
    assert search.advance_greedily(7, -1.0)
    assert not search.advance_greedily(EOS, -2.0)

    (best,) = search.best()
    assert (best.ids, best.log_probs) == ((5, 6, 7), (0.0, 0.0, -1.0, -2.0))
    assert best.score == pytest.approx(-3.0 / 5)
    assert search.target_ids(best) == [BOS, 8, 5, 6, 7]
    assert search.target_ids(best, with_eos=True) == [BOS, 8, 5, 6, 7, EOS]


@pytest.mark.parametrize(("first", "ids"), [({EOS: -0.1, 7: -0.2}, (5,)), ({7: -0.2, EOS: -0.3}, (5, 7))])
def test_the_prefix_alone_is_a_translation_only_if_it_is_the_best(
    first: dict[int, float], ids: tuple[int, ...]
) -> None:
    options = DecodingOptions(beam_size=2, target_prefix=(5,), length_penalty=0.0)
    search = BeamSearch(options, max_tokens=9, bos_id=BOS, eos_id=EOS)
    others = {20: -9.0, 21: -9.5}
    advance(search, {9: -0.1})

    rows = [first | others]
    while advance(search, *rows):
        rows = [{EOS: -1.0, 8: -3.0} | others] * len(search.last_ids)

    assert search.best()[0].ids == ids


def test_beams_behind_a_prefix_have_it_in_common() -> None:
    search = BeamSearch(DecodingOptions(beam_size=2, target_prefix=PREFIX), max_tokens=9, bos_id=BOS, eos_id=EOS)
    advance(search, {9: -0.1})
    advance(search, {9: -0.1})
    advance(search, {7: -0.1, 8: -0.2, 9: -8.0, 10: -9.0})
    advance(search, {9: -0.1, 10: -0.3}, {9: -0.9, 10: -1.0})

    assert search.num_common(0, 1) == 3  # bos and the prefix


def test_a_prefix_that_is_too_long_is_cut_so_that_the_search_ends() -> None:
    search = BeamSearch(DecodingOptions(beam_size=1, target_prefix=(5,) * 9), max_tokens=6, bos_id=BOS, eos_id=EOS)

    for _ in range(5):
        assert advance(search, {7: -0.1}) == [0]
    assert advance(search, {7: -0.1}) == []

    assert search.best()[0].ids == (5, 5, 5, 5, 7, 7)
    assert search.best()[0].finish_reason is FinishReason.LENGTH


def test_what_a_caller_gives_is_no_loop() -> None:
    options = DecodingOptions(beam_size=1, target_prefix=(5,) * 12, end_loops=True)
    search = BeamSearch(options, max_tokens=40, bos_id=BOS, eos_id=EOS, source_ids=(9, EOS))
    for _ in range(12):
        advance(search, {7: -0.1})
    for token in (8, 9, 10, 11):
        assert search.advance_greedily(token, -0.1)
    assert not search.advance_greedily(EOS, -0.1)

    assert search.best()[0].ids == (*[5] * 12, 8, 9, 10, 11)


def test_a_loop_behind_it_is_cut_off() -> None:
    options = DecodingOptions(beam_size=1, target_prefix=(5, 5, 5), end_loops=True)
    search = BeamSearch(options, max_tokens=40, bos_id=BOS, eos_id=EOS, source_ids=(9, EOS))
    for _ in range(3):
        advance(search, {7: -0.1})
    while search.advance_greedily(5, -0.1):
        pass

    assert search.best()[0].ids == (5, 5, 5, 5)
    assert search.best()[0].finish_reason is FinishReason.REPETITION
