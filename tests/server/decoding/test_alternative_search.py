"""Hypotheses that begin with different tokens."""

import math
from typing import Any

import numpy as np
import pytest

from server.decoding.alternative_search import AlternativeSearch
from server.decoding.options import DecodingOptions, SearchRules
from server.decoding.result import Hypothesis
from server.decoding.steering import Step, change_step
from tests.server.decoding.test_beam_search import BOS, EOS, VOCAB, log_probs_after, run


def alternatives(seed: int, *, max_tokens: int = 9, **options: Any) -> list[Hypothesis]:
    """What the search finds in the fake network of `run`, as the engine leads it."""
    asked = DecodingOptions(return_alternatives=True, **options)
    search = AlternativeSearch(asked, max_tokens=max_tokens, bos_id=BOS, eos_id=EOS)
    fed = [[BOS]]
    for _ in range(max_tokens):
        logits = np.array([log_probs_after(ids, seed, 0.1) for ids in fed], np.float32)
        top_ids = np.argsort(-logits, axis=1, kind="stable")[:, : search.top_k].tolist()
        step = Step(logits, top_ids, np.take_along_axis(logits, np.array(top_ids), axis=1).tolist())
        (wanted,) = change_step([(search, range(len(logits)))], step)
        parents = search.advance(step.top_ids, step.top_log_probs, wanted)
        if not parents:
            return search.best()
        fed = [[*fed[parent], token] for parent, token in zip(parents, search.last_ids, strict=True)]
        assert len({tuple(ids) for ids in fed}) == len(fed)
    raise AssertionError("the search did not end")


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("prefix", [(), (5, 6)])
@pytest.mark.parametrize("steered", [{}, {"min_output_tokens": 1}])
def test_each_of_the_likeliest_tokens_is_gone_on_with_as_if_it_were_given(
    prefix: tuple[int, ...], width: int, steered: dict[str, int]
) -> None:
    for seed in range(30):
        of_search: dict[str, Any] = {"beam_size": width, "length_penalty": 0.0}

        found = alternatives(seed, num_hypotheses=3, target_prefix=prefix, **of_search, **steered)

        first = log_probs_after([BOS, *prefix], seed, 0.1)
        tokens = sorted((token for token in range(VOCAB) if token != EOS), key=lambda token: -first[token])[:3]
        rest = math.log(1.0 - math.exp(first[EOS]))
        for hypothesis, token in zip(found, tokens, strict=True):
            given = (*prefix, token)
            (best, *_) = run(DecodingOptions(forced_prefix=given, **of_search), 9, SearchRules(), seed, 0.1)
            assert hypothesis.ids == (*given, *best.ids)
            assert hypothesis.score == pytest.approx(first[token] - rest + best.score, abs=1e-4)


def test_improbable_alternatives_are_left_out_but_for_the_best() -> None:
    everything = alternatives(1, beam_size=1, num_hypotheses=4)
    first = log_probs_after([BOS], 1, 0.1)
    of_second = math.exp(first[everything[1].ids[0]]) / (1.0 - math.exp(first[EOS]))

    assert len(everything) == 4
    for least, number in ((of_second - 1e-4, 2), (of_second + 1e-4, 1), (1.0, 1)):
        found = alternatives(1, beam_size=1, num_hypotheses=4, min_alternative_expansion_prob=least)
        assert [each.ids for each in found] == [each.ids for each in everything[:number]]


def test_tokens_have_their_own_log_probabilities() -> None:
    (found, *_) = alternatives(2, beam_size=1, num_hypotheses=2, target_prefix=(5,), with_tokens=True)

    expected = [log_probs_after([BOS, *found.ids[:number]], 2, 0.1) for number in range(1, len(found.ids))]
    assert found.log_probs[0] == 0.0
    assert found.log_probs[1 : len(found.ids)] == pytest.approx(
        [row[token] for row, token in zip(expected, found.ids[1:], strict=True)], abs=1e-4
    )


def test_it_ends_at_the_limit_on_tokens() -> None:
    for seed in range(20):
        found = alternatives(seed, max_tokens=4, beam_size=2, num_hypotheses=3, target_prefix=(5,))

        assert max(len(each.ids) for each in found) <= 4
        assert len({each.ids[1] for each in found}) == 3
