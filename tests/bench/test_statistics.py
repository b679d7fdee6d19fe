"""That rounds are resampled as pairs, and that what does not vary has an interval without width."""

import numpy as np

from tests.bench.statistics import median_of_ratios, median_ratio


def test_what_slows_both_systems_down_in_the_same_rounds_does_not_widen_the_interval() -> None:
    theirs, apart = np.random.default_rng(1).uniform(500, 1500, (2, 9)).tolist()

    together = median_ratio([1.2 * each for each in theirs], theirs)
    independent = median_ratio(apart, theirs)

    assert str(together) == "1.20 (1.20-1.20)"
    assert independent.high - independent.low > 0.1


def test_one_round_has_an_interval_too() -> None:
    assert str(median_ratio([3.0], [2.0])) == "1.50 (1.50-1.50)"


def test_a_change_of_speed_within_a_run_does_not_change_the_median_of_ratios() -> None:
    """The machine is half as fast from the third of five rounds on, in which the other system was first."""
    ours, theirs = [11.0, 11.0, 22.0, 22.0, 22.0], [10.0, 10.0, 10.0, 20.0, 20.0]

    assert str(median_of_ratios(ours, theirs)).startswith("1.10 (1.10-")
    assert str(median_ratio(ours, theirs)).startswith("2.20 ")
