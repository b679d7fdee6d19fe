"""The searches, against every path there is, and against the oracle."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
import torch

from model import ctc_search
from server.decoding.ctc import Positions, best_path, exact_length, prefix_beam

BLANK = 2


def positions_of(log_probs: torch.Tensor, k: int) -> Positions:
    """What a network returns of these log-probabilities [T, V]."""
    top = log_probs.topk(min(k, log_probs.shape[1]))
    ids = np.concatenate([np.full((len(log_probs), 1), BLANK), top.indices.numpy()], axis=1)
    return Positions(ids, np.concatenate([log_probs[:, [BLANK]].numpy(), top.values.numpy()], axis=1))


def drawn(rng: np.random.Generator, length: int, vocab_size: int) -> torch.Tensor:
    return torch.tensor(2 * rng.normal(size=(length, vocab_size))).log_softmax(dim=-1)


def every_translation(log_probs: torch.Tensor) -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], float]]:
    """Returns the probability of each translation, and that of its best path, by trying all paths."""
    sums: dict[tuple[int, ...], float] = defaultdict(float)
    best: dict[tuple[int, ...], float] = defaultdict(float)
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        probability = math.exp(sum(float(row[token]) for row, token in zip(log_probs, path, strict=True)))
        ids = tuple(ctc_search.collapse(path, BLANK))
        sums[ids] += probability
        best[ids] = max(best[ids], probability)
    return sums, best


@pytest.mark.parametrize("seed", range(12))
def test_searches_find_the_best_of_all_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length, vocab_size = 1 + seed % 5, 3 + seed % 2
    log_probs = drawn(rng, length, vocab_size)
    positions = positions_of(log_probs, vocab_size)
    sums, best = every_translation(log_probs)

    greedy = best_path(positions)
    assert math.exp(greedy.log_prob) == pytest.approx(max(best.values()))
    assert best[greedy.ids] == pytest.approx(max(best.values()))

    ranked = sorted(sums, key=lambda ids: -sums[ids])
    found = prefix_beam(positions, 1000)  # so wide that nothing is lost
    assert [each.ids for each in found] == ranked
    assert [math.exp(each.log_prob) for each in found] == pytest.approx([sums[ids] for ids in ranked])

    for num_tokens in range(length + 1):
        own = {ids: probability for ids, probability in best.items() if len(ids) == num_tokens}
        exact = exact_length(positions, num_tokens)
        assert len(exact.ids) == num_tokens
        assert math.exp(exact.log_prob) == pytest.approx(max(own.values())) == own[exact.ids]


@pytest.mark.parametrize("seed", range(40))
def test_searches_are_those_of_the_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length, vocab_size, k, width = (int(rng.integers(*bounds)) for bounds in ((1, 30), (3, 40), (2, 12), (1, 9)))
    log_probs = drawn(rng, length, vocab_size)
    kept, positions = ctc_search.keep_top(log_probs, k, BLANK), positions_of(log_probs, k)

    expected = [ctc_search.best_path(kept, BLANK), *ctc_search.prefix_beam(kept, BLANK, width)]
    found = [best_path(positions), *prefix_beam(positions, width)]
    if k > 2:
        for num_tokens in {0, 1, length // 2, length}:
            expected.append(ctc_search.exact_length(kept, BLANK, num_tokens))
            found.append(exact_length(positions, num_tokens))

    assert [list(each.ids) for each in found] == [each.ids for each in expected]
    assert [each.log_prob for each in found] == pytest.approx([each.log_prob for each in expected])


def test_a_number_of_tokens_that_no_path_has_is_refused() -> None:
    positions = positions_of(drawn(np.random.default_rng(0), 4, 5), 3)

    with pytest.raises(ValueError, match="no path over 4 positions has 5 tokens"):
        exact_length(positions, 5)


def test_greedy_search_of_logits_is_that_of_log_probabilities() -> None:
    positions = positions_of(drawn(np.random.default_rng(1), 9, 6), 1)

    assert best_path(Positions(positions.ids, positions.log_probs + 3)).ids == best_path(positions).ids


def test_the_blank_among_the_best_tokens_counts_once() -> None:
    log_probs = torch.tensor([[0.2, 0.2, 0.6]]).log()
    positions = positions_of(log_probs, 3)

    assert {each.ids: round(math.exp(each.log_prob), 3) for each in prefix_beam(positions, 8)} == {
        (): 0.6,
        (0,): 0.2,
        (1,): 0.2,
    }
