"""Medians, and how sure one can be of their ratio."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Ratio:
    """How two systems compare, with the 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}-{self.high:.2f})"


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Returns median(ours) / median(theirs) of alternated rounds.

    The rounds are resampled as pairs, since what slows the machine down for a while slows both systems down.
    Source: Efron, "Bootstrap methods", 1979; the percentile interval. `scipy.stats.bootstrap(paired=True,
    method="percentile")` with the same seed gives the same six digits, is longer to call and takes no single round.
    """
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    rounds = _resampled(len(a))
    ratios = np.median(a[rounds], axis=1) / np.median(b[rounds], axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Ratio(float(np.median(a) / np.median(b)), float(low), float(high))


def median_of_ratios(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Returns the median of the ratios of the rounds, with its interval.

    For many short rounds on a machine whose speed changes within a run: both values of a round are of the same speed,
    but the two medians of `median_ratio` may be of different ones.
    """
    ratios = np.asarray(ours, np.float64) / np.asarray(theirs, np.float64)
    low, high = np.percentile(np.median(ratios[_resampled(len(ratios))], axis=1), [2.5, 97.5])
    return Ratio(float(np.median(ratios)), float(low), float(high))


def _resampled(num_rounds: int) -> NDArray[np.int64]:
    """Returns the numbers of rounds, drawn anew `_RESAMPLES` times, [`_RESAMPLES`, rounds]."""
    return np.random.default_rng(0).integers(0, num_rounds, (_RESAMPLES, num_rounds))


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Returns mean, p50, p95 and p99."""
    array = np.asarray(values, np.float64)
    p50, p95, p99 = np.percentile(array, [50, 95, 99])
    return {"mean": float(array.mean()), "p50": float(p50), "p95": float(p95), "p99": float(p99)}
