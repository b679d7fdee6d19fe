"""That rounds are resampled as pairs, and that what does not vary has an interval without width."""

import numpy as np

from tests.bench.statistics import median_ratio


def test_what_slows_both_systems_down_in_the_same_rounds_does_not_widen_the_interval() -> None:
    theirs, apart = np.random.default_rng(1).uniform(500, 1500, (2, 9)).tolist()

    together = median_ratio([1.2 * each for each in theirs], theirs)
    independent = median_ratio(apart, theirs)

    assert str(together) == "1.20 (1.20-1.20)"
    assert independent.high - independent.low > 0.1


def test_one_round_has_an_interval_too() -> None:
    assert str(median_ratio([3.0], [2.0])) == "1.50 (1.50-1.50)"
