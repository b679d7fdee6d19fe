"""What a sentence's options make of what a network returns."""

from typing import Any

import numpy as np
import pytest

from server.decoding.ctc import Positions, exact_length, prefix_beam
from server.decoding.one_pass_search import OnePassSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason
from server.errors import InvalidRequest

BLANK, EOS = 2, 3
SOURCE = (9, 9, 9, 9, 9, EOS)


def new_search(**options: Any) -> OnePassSearch:
    return OnePassSearch(DecodingOptions(**options), max_tokens=50, bos_id=BLANK, eos_id=EOS)


def positions_of(num_source_tokens: int, k: int = 8) -> Positions:
    """Random positions of a sentence, of 20 tokens."""
    rng = np.random.default_rng(num_source_tokens)
    logits = 2 * rng.normal(size=(2 * num_source_tokens, 20))
    log_probs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    best = np.argsort(-log_probs, axis=1)[:, :k]
    ids = np.concatenate([np.full((len(best), 1), BLANK), best], axis=1)
    return Positions(ids, np.take_along_axis(log_probs, ids, axis=1).astype(np.float32))


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"beam_size": 1}, 1), ({"beam_size": 4}, 8), ({"beam_size": 4, "exact_tokens": 3}, 8), ({"ratio": 1.0}, 8)],
)
def test_a_search_says_how_many_tokens_it_looks_at(options: dict[str, Any], expected: int) -> None:
    search = new_search(**options)

    assert search.top_k == expected
    assert not search.is_greedy  # it takes no token at a time


def test_a_beam_returns_as_many_translations_as_are_asked_for() -> None:
    search, positions = new_search(beam_size=4, num_hypotheses=3), positions_of(6)

    search.read(positions, SOURCE)

    found = search.best()
    assert [(each.ids, each.score) for each in found] == [
        (each.ids, each.log_prob) for each in prefix_beam(positions, 4)[:3]
    ]
    assert {each.finish_reason for each in found} == {FinishReason.STOP}
    assert search.num_tokens == len(found[0].ids)


@pytest.mark.parametrize(
    ("options", "num_tokens"),
    [
        ({"exact_tokens": 1}, 1),
        ({"exact_tokens": 12}, 12),
        ({"ratio": 1.0}, 5),
        ({"ratio": 0.9}, 5),  # 4.5, rounded up
        ({"ratio": 0.01}, 1),
        ({"ratio": 2.0}, 10),
    ],
)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_translation_has_the_length_that_is_asked_for(
    options: dict[str, Any], num_tokens: int, beam_size: int
) -> None:
    search, positions = new_search(beam_size=beam_size, **options), positions_of(6)

    search.read(positions, SOURCE)

    (found,) = search.best()
    assert len(found.ids) == search.num_tokens == num_tokens
    expected = exact_length(positions, num_tokens)
    assert (found.ids, found.score) == (expected.ids, expected.log_prob)


def test_a_length_that_a_sentence_cannot_have_is_refused() -> None:
    rule = "decoding.exact_tokens: must be at most 12 for a sentence of 5 source tokens, not 13"
    with pytest.raises(InvalidRequest, match=rule):
        new_search(exact_tokens=13).read(positions_of(6), SOURCE)


def test_without_scores_there_are_none() -> None:
    search = new_search(beam_size=1, with_scores=False)

    search.read(positions_of(6), SOURCE)

    assert search.best()[0].score == 0
