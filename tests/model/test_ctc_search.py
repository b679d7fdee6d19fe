import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from model.ctc_search import Reading, best_path, collapse, exact_length, keep_top, prefix_beam, translate
from model.one_pass import OnePass
from tests.model.test_one_pass import build

CASES = 1200
WHOLE = 10**6  # a beam that loses nothing


def random_positions(seed: int) -> tuple[Tensor, int]:
    """Returns log-probabilities [1..6, 2..4] and a blank."""
    generator = torch.Generator().manual_seed(seed)
    length, size = 1 + seed % 6, 2 + seed // 6 % 3
    scores = 2 * torch.randn(length, size, generator=generator, dtype=torch.float64)
    return scores.log_softmax(-1), seed // 18 % size


def all_paths(positions: Tensor) -> Iterator[tuple[tuple[int, ...], float]]:
    rows = positions.tolist()
    for path in itertools.product(range(positions.shape[1]), repeat=len(rows)):
        yield path, sum(row[label] for row, label in zip(rows, path, strict=True))


def naive_collapse(path: tuple[int, ...], blank: int) -> tuple[int, ...]:
    return tuple(label for label, _ in itertools.groupby(path) if label != blank)


def test_prefix_beam_is_brute_force_over_all_paths() -> None:
    for seed in range(CASES):
        positions, blank = random_positions(seed)
        sums: dict[tuple[int, ...], float] = {}
        for path, log_prob in all_paths(positions):
            ids = naive_collapse(path, blank)
            sums[ids] = sums.get(ids, 0.0) + math.exp(log_prob)

        found = prefix_beam(positions, blank, WHOLE)

        assert {tuple(each.ids): each.log_prob for each in found} == pytest.approx(
            {ids: math.log(total) for ids, total in sums.items()}, abs=1e-9
        )
        assert found == sorted(found, key=lambda reading: -reading.log_prob)


def test_exact_length_is_brute_force_over_all_paths() -> None:
    for seed in range(CASES):
        positions, blank = random_positions(seed)
        best: dict[int, Reading] = {}
        for path, log_prob in all_paths(positions):
            ids = naive_collapse(path, blank)
            if len(ids) not in best or log_prob > best[len(ids)].log_prob:
                best[len(ids)] = Reading(list(ids), log_prob)

        for num_tokens in range(len(positions) + 2):
            if num_tokens in best:
                found = exact_length(positions, blank, num_tokens)
                assert found.ids == best[num_tokens].ids
                assert found.log_prob == pytest.approx(best[num_tokens].log_prob, abs=1e-9)
            else:
                with pytest.raises(ValueError, match=f"has {num_tokens} tokens"):
                    exact_length(positions, blank, num_tokens)


def test_the_best_path_is_that_of_brute_force() -> None:
    for seed in range(200):
        positions, blank = random_positions(seed)
        path, log_prob = max(all_paths(positions), key=lambda each: each[1])

        found = best_path(positions, blank)

        assert found.ids == list(naive_collapse(path, blank))
        assert found.log_prob == pytest.approx(log_prob, abs=1e-9)


def test_what_is_not_among_the_top_is_in_no_translation() -> None:
    positions, blank = random_positions(17)  # six positions of four labels

    top = keep_top(positions, 2, blank)

    for row, kept in zip(positions.tolist(), top.tolist(), strict=True):
        best = sorted(range(4), key=lambda label: -row[label])[:2]
        assert kept == [value if label in {*best, blank} else -math.inf for label, value in enumerate(row)]
    allowed = [set(torch.nonzero(row > -math.inf).flatten().tolist()) for row in top]
    sums: dict[tuple[int, ...], float] = {}
    for path, log_prob in all_paths(positions):
        if all(label in some for label, some in zip(path, allowed, strict=True)):
            ids = naive_collapse(path, blank)
            sums[ids] = sums.get(ids, 0.0) + math.exp(log_prob)
    assert {tuple(each.ids): math.exp(each.log_prob) for each in prefix_beam(top, blank, WHOLE)} == pytest.approx(sums)
    assert torch.equal(keep_top(positions, 99, blank), positions)


def test_a_narrow_beam_keeps_the_best_and_never_claims_too_much() -> None:
    for seed in range(300):
        positions, blank = random_positions(seed)
        truth = {tuple(each.ids): each.log_prob for each in prefix_beam(positions, blank, WHOLE)}

        narrow = prefix_beam(positions, blank, 2)

        assert len(narrow) == min(2, len(truth))
        assert all(each.log_prob <= truth[tuple(each.ids)] + 1e-9 for each in narrow)


@pytest.mark.parametrize(
    ("path", "translation"),
    [([], []), ([0, 0], []), ([1, 1, 0, 1, 2, 2], [1, 1, 2]), ([2, 0, 0, 2], [2, 2]), ([1, 2, 1], [1, 2, 1])],
)
def test_a_path_collapses(path: list[int], translation: list[int]) -> None:
    assert collapse(path, 0) == translation


def test_a_batch_translates_as_each_sentence_alone() -> None:
    model: OnePass = build(norm="pre")
    sources = [[4, 9, 17, 3], [5, 3], [8, 8, 6, 12, 25, 7, 3]]

    together = translate(model, sources)

    assert together == [translate(model, [source])[0] for source in sources]
    with torch.inference_mode():
        positions = model(torch.tensor([sources[0]]))[0].log_softmax(-1)
    assert together[0] == best_path(positions, model.config.bos_id).ids
    assert any(together)
    considered = keep_top(positions, 6, model.config.bos_id)
    wide = translate(model, sources, beam_size=3)
    assert wide[0] == prefix_beam(considered, model.config.bos_id, 3)[0].ids
    assert wide == [translate(model, [source], beam_size=3)[0] for source in sources]
