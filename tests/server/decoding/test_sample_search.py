"""Drawing tokens: how often each is drawn, and what the draws depend on."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from server.decoding import sample_search
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.sample_search import SampleSearch, draw, least_probability, likely
from tests.server.decoding.test_beam_search import advance_steered

BOS, EOS = 2, 3
LOGITS = np.log(np.array([1, 2, 3, 4, 10, 20, 20, 40], np.float32) / 100)
_MOST_CHI_SQUARE = 24.3  # with 7 degrees of freedom, one test in a thousand has more


class Numbers(Random):
    """Gives these numbers, one after the other."""

    def __init__(self, *numbers: float) -> None:
        super().__init__()
        self._left = [*reversed(numbers)]

    def random(self) -> float:
        return self._left.pop()


def chi_square(sampling: Sampling, expected: list[float]) -> float:
    """Returns how far 20,000 draws are from the probabilities that are expected."""
    chance, total = Random(5), 20_000
    counts = Counter(draw(LOGITS, 7, 0.4, sampling, chance) for _ in range(total))
    assert set(counts) == {token for token, share in enumerate(expected) if share}
    return sum((counts[token] - total * share) ** 2 / (total * share) for token, share in enumerate(expected) if share)


@pytest.mark.parametrize(
    ("sampling", "weights"),
    [
        (Sampling(), [1, 2, 3, 4, 10, 20, 20, 40]),
        (Sampling(temperature=0.5), [1, 4, 9, 16, 100, 400, 400, 1600]),
        (Sampling(temperature=2), list(np.sqrt([1, 2, 3, 4, 10, 20, 20, 40]))),
        (Sampling(top_k=3), [0, 0, 0, 0, 0, 20, 20, 40]),
        (Sampling(top_p=0.5), [0, 0, 0, 0, 0, 20, 20, 40]),  # both, as they are equal
        (Sampling(top_p=0.85), [0, 0, 0, 0, 10, 20, 20, 40]),
        (Sampling(top_k=4, top_p=0.85, temperature=0.5), [0, 0, 0, 0, 0, 400, 400, 1600]),
    ],
)
def test_tokens_are_drawn_as_often_as_they_should(sampling: Sampling, weights: list[float]) -> None:
    expected = [weight / sum(weights) for weight in weights]

    assert chi_square(sampling, expected) < _MOST_CHI_SQUARE


def test_the_measure_notices_other_probabilities() -> None:
    assert chi_square(Sampling(temperature=1.1), [each / 100 for each in (1, 2, 3, 4, 10, 20, 20, 40)]) > 100


def test_every_number_draws_a_token() -> None:
    assert [draw(LOGITS, 7, 0.4, Sampling(), Numbers(number)) for number in (0.0, 0.399, 0.401)] == [7, 7, 0]
    assert draw(LOGITS, 7, 0.4, Sampling(), Numbers(np.nextafter(1.0, 0.0))) == 6
    assert draw(LOGITS, 7, 0.4, Sampling(top_k=1, temperature=100), Numbers(0.999)) == 7
    assert draw(np.zeros(300, np.float32), 0, 1 / 300, Sampling(top_p=0.01), Numbers(0.999)) == 299, "all are equal"
    assert draw(np.zeros(300, np.float32), 0, 1 / 300, Sampling(top_p=1e-9), Numbers(0.999)) == 0, "it is enough alone"
    assert draw(np.zeros(300, np.float32), 0, 1 / 300, Sampling(top_k=2), Numbers(0.999)) == 299, "all are equal"


def test_a_token_behind_the_most_probable_ones_is_not_drawn_again() -> None:
    assert draw(LOGITS, 7, 0.4, Sampling(top_p=0.5), Numbers(0.41, 0.99)) == 6
    assert draw(LOGITS, 7, 0.4, Sampling(top_p=0.5), Numbers(0.45, 0.48, 0.99)) == 6, "2, and then 4"
    assert draw(LOGITS, 7, 0.4, Sampling(top_p=1e-9), Numbers(0.999, 0.99)) == 7


@pytest.mark.parametrize("top_p", [1e-6, 0.1, 0.9])
def test_few_draws_find_one_of_the_most_probable_tokens(top_p: float) -> None:
    chance, logits = Random(1), np.linspace(1, 0, 12_000, dtype=np.float32)

    num_draws = [_num_draws(logits, top_p, chance) for _ in range(200)]

    assert np.mean(num_draws) < 15, "each leaves out half of the rest"


def _num_draws(logits: NDArray[np.float32], top_p: float, chance: Random) -> int:
    numbers = Numbers(*(chance.random() for _ in range(1000)))
    draw(logits, 0, 1e-4, Sampling(top_p=top_p), numbers)
    return 1000 - len(numbers._left)


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(top_k=200), Sampling(temperature=1.3), Sampling(top_k=300, temperature=0.7)]
)
def test_large_vocabularies_are_drawn_from_as_small_ones(sampling: Sampling) -> None:
    chance = np.random.Generator(np.random.Philox(9))
    logits = chance.normal(0, 2, 1000).astype(np.float32)
    best = int(logits.argmax())
    kept = np.sort(np.argsort(-logits)[1 : sampling.top_k or None])
    shares = np.exp(logits[[best, *kept]].astype(np.float64) / sampling.temperature)
    ends = np.cumsum(shares) / shares.sum()
    probability = float(np.exp(logits[best]) / np.exp(logits).sum())
    for number in chance.random(200):
        if abs(number - ends).min() > 1e-6:
            expected = [best, *kept][int(np.searchsorted(ends, number, side="right"))]
            assert draw(logits, best, probability, sampling, Numbers(number)) == expected


@pytest.mark.parametrize("offset", [-1e4, -100, -70, 50, 80, 1e4])
def test_only_the_differences_of_logits_count(offset: float) -> None:
    logits = LOGITS + np.float32(offset)

    for number in (0.1, 0.35, 0.55, 0.75, 0.95):
        for sampling in (Sampling(temperature=1.25), Sampling(temperature=0.01), Sampling(top_k=5)):
            expected = draw(LOGITS, 7, 0.4, sampling, Numbers(number))
            assert draw(logits, 7, 0.4, sampling, Numbers(number)) == expected


@pytest.mark.parametrize("sampling", [Sampling(top_p=0.6), Sampling(top_k=300, top_p=0.5, temperature=1.3)])
def test_the_most_probable_tokens_of_large_vocabularies_are_drawn_as_often_as_they_should(sampling: Sampling) -> None:
    logits = np.random.Generator(np.random.Philox(9)).normal(0, 2, 1000).astype(np.float32)
    order = np.argsort(-logits)[: sampling.top_k or None]
    shares = np.exp(logits[order].astype(np.float64) / sampling.temperature)
    shares /= shares.sum()
    shares = shares[(np.cumsum(shares) - shares) < sampling.top_p]
    probability, chance = float(np.exp(logits[order[0]]) / np.exp(logits).sum()), Random(4)
    counts = Counter(draw(logits, int(order[0]), probability, sampling, chance) for _ in range(5000))

    assert counts.keys() <= {*order[: len(shares)].tolist()}
    expected = 5000 * shares / shares.sum()
    found = np.array([counts[token] for token in order[: len(shares)].tolist()])
    sigma = (((found - expected) ** 2 / expected).sum() - len(shares) + 1) / np.sqrt(2 * len(shares) - 2)
    assert sigma < 4


def sampled(source_ids: tuple[int, ...] = (9, 8, EOS), num: int = 3, seed: int = 1, **options: Any) -> list[Hypothesis]:
    """Samples with the same logits in each step, of which eos has a tenth."""
    search = SampleSearch(
        DecodingOptions(beam_size=num, num_hypotheses=num, sampling=Sampling(seed=seed), with_tokens=True, **options),
        source_ids=source_ids,
        max_tokens=20,
        bos_id=BOS,
        eos_id=EOS,
    )
    logits = np.log(np.array([0, 0, 0, 10, 30, 40, 20], np.float32) / 100 + np.float32(1e-30))
    parents = [0]
    while parents:
        if search.is_steered:
            parents = advance_steered(search, np.tile(logits, (len(search.last_ids), 1)))
        else:
            parents = search.advance([[5]], [[0.0]])
    return search.best()


def test_the_seed_and_the_source_decide() -> None:
    first = sampled()

    assert sampled() == first
    assert sampled(seed=2) != first
    assert sampled(source_ids=(9, 7, EOS)) != first
    assert len({each.ids for each in first}) == 3
    assert [each.score for each in first] == sorted((each.score for each in first), reverse=True)


def test_a_hypothesis_is_the_same_whatever_is_drawn_beside_it() -> None:
    (alone,) = sampled(num=1)

    assert alone in sampled(num=4)


def test_what_one_hypothesis_begins_with_does_not_change_what_another_does(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [Numbers(0.99), Numbers(0.2)]
    monkeypatch.setattr(sample_search, "_numbers", lambda _seed, _source_ids, number: numbers[number])
    search = SampleSearch(
        DecodingOptions(beam_size=2, num_hypotheses=2, sampling=Sampling(temperature=0.5)),
        max_tokens=20,
        source_ids=(9, 8, EOS),
        bos_id=BOS,
        eos_id=EOS,
    )

    advance_steered(search, LOGITS[np.newaxis])

    assert search.last_ids == [6, 7]


def test_scores_are_of_the_probabilities_before_temperature() -> None:
    shares = {3: 0.1, 4: 0.3, 5: 0.4, 6: 0.2}

    for best in sampled(num=4):
        ids = [*best.ids, EOS] if best.finish_reason is FinishReason.STOP else best.ids
        assert best.log_probs == pytest.approx([np.log(shares[token]) for token in ids], abs=1e-5)
        assert best.score == pytest.approx(sum(best.log_probs) / len(ids))


def test_samples_begin_behind_the_prefix_and_end_at_the_limit() -> None:
    for best in sampled(num=4, forced_prefix=(5, 6)):
        assert len(best.ids) <= 18
        assert best.finish_reason is FinishReason.STOP or len(best.ids) == 18


def test_a_sample_that_repeats_itself_ends() -> None:
    search = SampleSearch(
        DecodingOptions(beam_size=2, num_hypotheses=2, sampling=Sampling(top_k=1), end_loops=True),
        source_ids=(9, 8, EOS),
        max_tokens=20,
        bos_id=BOS,
        eos_id=EOS,
    )
    for _ in range(7):
        assert advance_steered(search, np.tile(LOGITS, (len(search.last_ids), 1)))
    assert advance_steered(search, np.tile(LOGITS, (2, 1))) == []
    assert [(best.ids, best.finish_reason) for best in search.best()] == [((7,), FinishReason.REPETITION)] * 2


@pytest.mark.parametrize("size", [16, 127, 128, 300, 1000, 4096])
@pytest.mark.parametrize("top_k", [1, 2, 8, 16])
def test_the_best_tokens_are_among_the_likely_ones(size: int, top_k: int) -> None:
    chance = np.random.Generator(np.random.Philox(size))
    for values in (chance.normal(0, 2, size), np.arange(size), np.zeros(size)):
        best = np.argsort(-values, kind="stable")[:top_k]
        found = likely(values.astype(np.float32), top_k)
        assert {*best.tolist()} <= {*found.tolist()}
        assert len(found) < size / 4 or size < 1000 or not values.any()


@pytest.mark.parametrize("temperature", [1.0, 0.8, 0.3, 0.01])
def test_the_best_token_is_at_least_as_probable_with_a_temperature_as_is_said(temperature: float) -> None:
    chance = np.random.Generator(np.random.Philox(2))
    for size in (2, 3, 50):
        for _ in range(50):
            logits = chance.normal(0, chance.uniform(0.1, 6), size)
            shares, probability = np.exp((logits - logits.max()) / temperature), np.exp(logits - logits.max())
            exact, least = 1 / shares.sum(), least_probability(1 / probability.sum(), temperature)
            assert 1 / probability.sum() - 1e-12 <= least <= exact + 1e-12
            assert size > 2 or least == pytest.approx(exact)
    assert least_probability(1.0, temperature) == least_probability(1.0 + 1e-7, temperature) == 1.0
