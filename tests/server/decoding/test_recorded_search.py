"""The tree of a search: by hand, and for random networks beside the same search unrecorded."""

import dataclasses
import random
from typing import Any

import numpy as np
import pytest

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, Sampling, SearchRules
from server.decoding.recorded_search import RecordedSearch
from server.decoding.result import FinishReason, SearchNode
from server.decoding.searches import new_search
from server.decoding.terms import Replaced, Terms
from tests.server.decoding.test_beam_search import BOS, EOS, advance, advance_steered

VOCABULARY = 12
TERMS = Terms((((7, 8),),), Replaced(((),), ()))


def recorded(beam_size: int, **options: Any) -> RecordedSearch:
    chosen = DecodingOptions(beam_size=beam_size, with_search=True, **options)
    search = new_search(chosen, max_tokens=4, bos_id=BOS, eos_id=EOS)
    assert isinstance(search, RecordedSearch)
    return search


def test_the_tree_has_what_was_kept_and_where_hypotheses_end() -> None:
    search = recorded(2)
    advance(search, {7: -0.5, 8: -0.75, 9: -4.0, 10: -5.0})
    advance(search, {EOS: -0.25, 12: -6.0, 13: -7.0, 14: -8.0}, {15: -0.5, 16: -1.0, 17: -8.0, 18: -9.0})
    assert advance(search, {19: -1.0, 20: -9.0, 21: -9.0, 22: -9.0}, {EOS: -0.25, 23: -9.0, 24: -9.0, 25: -9.0}) == []

    assert search.tree() == (
        SearchNode(None, 7, -0.5, is_chosen=True),
        SearchNode(None, 8, -0.75),
        SearchNode(1, 15, -1.25),
        SearchNode(1, 16, -1.75),
        SearchNode(2, 19, -2.25),
        SearchNode(2, 20, -10.25),
        SearchNode(0, EOS, -0.75, -0.375, FinishReason.STOP, is_chosen=True),
        SearchNode(3, EOS, -2.0, -2.0 / 3, FinishReason.STOP),
    )
    assert search.tree() == search.tree()


def test_the_tree_of_given_targets_has_them_all() -> None:
    search = recorded(2, given_targets=((7, 8, EOS), (7, 9, EOS)))
    for log_probs in ([-0.5], [-1.0, -0.25], [-0.5, -0.5]):
        search.advance([[1]] * len(search.last_ids), [[0.0]] * len(search.last_ids), log_probs)

    assert [(each.parent, each.token, each.log_prob, each.is_chosen) for each in search.tree()] == [
        (None, 7, -0.5, True),
        (0, 8, -1.5, False),
        (0, 9, -0.75, True),
        (1, EOS, -2.0, False),
        (2, EOS, -1.25, True),
    ]


def test_the_tree_has_what_translations_begin_with() -> None:
    search = recorded(2, target_prefix=(5,))
    advance(search, {9: -0.1, 10: -0.2, 11: -0.3, 12: -0.4})
    advance(search, {7: -0.5, 8: -0.75, 9: -4.0, 10: -5.0})
    while advance(search, *[{EOS: -0.25, 13: -6.0, 14: -7.0, 15: -8.0}] * len(search.last_ids)):
        pass
    best, other = search.finished[:2]
    search.finished = [dataclasses.replace(best, score=-9.0), other]  # as coverage may rank them

    assert search.tree()[:3] == (
        SearchNode(None, 5, 0.0, is_chosen=True),
        SearchNode(0, 7, -0.5),
        SearchNode(0, 8, -0.75, is_chosen=True),
    )
    assert [node.score for node in search.tree() if node.score is not None] == [-9.0, other.score]


def test_a_greedy_search_is_a_chain() -> None:
    search = recorded(1)
    for token in (7, 8, 9):
        assert search.advance_greedily(token, -0.5)
    assert not search.advance_greedily(10, -0.5)

    tree = search.tree()
    assert [(node.parent, node.token, node.log_prob) for node in tree] == [
        (None, 7, -0.5),
        (0, 8, -1.0),
        (1, 9, -1.5),
        (2, 10, -2.0),
    ]
    assert all(node.is_chosen for node in tree)
    assert (tree[-1].score, tree[-1].finish_reason) == (-0.5, FinishReason.LENGTH)


def test_a_loop_that_is_cut_off_ends_where_it_is_cut() -> None:
    search = new_search(
        DecodingOptions(beam_size=1, with_search=True, end_loops=True), max_tokens=200, bos_id=BOS, eos_id=EOS
    )
    assert isinstance(search, RecordedSearch)
    while search.advance_greedily(5, -0.125):
        pass

    (best,) = search.best()
    assert best.finish_reason is FinishReason.REPETITION
    (end,) = [index for index, node in enumerate(search.tree()) if node.score is not None]
    assert (end, search.tree()[end].finish_reason) == (len(best.ids) - 1, FinishReason.REPETITION)
    assert [node.is_chosen for node in search.tree()] == [index <= end for index in range(len(search.tree()))]


@pytest.mark.parametrize("max_tokens", [15, 16, 17])
def test_a_loop_that_ends_at_the_limit_is_cut_off_all_the_same(max_tokens: int) -> None:
    found = []
    for is_recorded in (False, True):
        options = DecodingOptions(beam_size=1, with_scores=True, end_loops=True, with_search=is_recorded)
        search = new_search(options, max_tokens=max_tokens, bos_id=BOS, eos_id=EOS, source_ids=(4, 5, 6, 7, 8, EOS))
        tokens = iter([*range(10, 18), *[5] * 20])
        while search.advance_greedily(next(tokens), -0.125):
            pass
        found.append(search.best())

    assert found[0] == found[1]
    assert (found[0][0].finish_reason is FinishReason.REPETITION) == (max_tokens >= 16)


OPTIONS: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 4, "num_hypotheses": 4},
    {"beam_size": 4, "patience": 2.0, "length_penalty": 0.5},
    {"beam_size": 3, "forced_prefix": (9, 4)},
    {"beam_size": 1, "repetition_penalty": 1.5},
    {"beam_size": 4, "no_repeat_ngram_size": 1},
    {"beam_size": 1, "sampling": Sampling(seed=4)},
    {"beam_size": 3, "num_hypotheses": 3, "sampling": Sampling(seed=4)},
    {"beam_size": 4, "terms": TERMS},
    {"beam_size": 4, "end_loops": True},
]


@pytest.mark.parametrize("rules", [SearchRules(), SearchRules(early_stopping=False, forced_eos=True)])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_recorded_search_finds_the_same(options: dict[str, Any], rules: SearchRules) -> None:
    for seed in range(20):
        plain, watched = (
            run(DecodingOptions(with_tokens=True, **options, with_search=is_recorded), rules, seed)
            for is_recorded in (False, True)
        )
        assert watched.best() == plain.best()
        assert isinstance(watched, RecordedSearch)
        tree = watched.tree()
        best = watched.best()[0]
        chosen = [node for node in tree if node.is_chosen]
        ends = [EOS] if best.finish_reason is FinishReason.STOP else []
        assert [node.token for node in chosen] == [*best.ids, *ends]
        assert chosen[-1].score == best.score
        assert [node.log_prob for node in chosen] == pytest.approx(np.cumsum(best.log_probs)[: len(chosen)], abs=1e-5)
        assert all(node.parent is None or node.parent < index for index, node in enumerate(tree))
        assert len({(node.parent, node.token) for node in tree}) == len(tree)
        ended = [dataclasses.replace(each, log_probs=()).score for each in watched.best()]
        assert set(ended) <= {node.score for node in tree}


def run(options: DecodingOptions, rules: SearchRules, seed: int) -> BeamSearch:
    """Searches with a network whose logits depend on the last token alone."""
    generator = random.Random(seed)
    table = np.array([[generator.uniform(0, 4) for _ in range(VOCABULARY)] for _ in range(VOCABULARY)], np.float32)
    search = new_search(options, max_tokens=12, bos_id=BOS, eos_id=EOS, rules=rules, source_ids=(5, EOS))
    while advance_steered(search, table[search.last_ids]):
        pass
    return search
