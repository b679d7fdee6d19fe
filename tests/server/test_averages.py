"""Averages, against what they were told."""

import math

import pytest

from server.averages import FadingMean, FadingSum
from tests.fakes import FakeClock


def test_the_first_observations_have_a_plain_mean() -> None:
    mean = FadingMean(7.0)
    assert mean.value == 7.0
    for value in (1.0, 2.0, 6.0):
        mean.add(value)

    assert mean.value == pytest.approx(3.0)


def test_old_observations_are_forgotten() -> None:
    mean = FadingMean(0.0)
    for _ in range(100):
        mean.add(1.0)
    mean.add(65.0)
    assert mean.value == pytest.approx(2.0)
    for _ in range(1000):
        mean.add(5.0)

    assert mean.value == pytest.approx(5.0, abs=0.001)


def test_terms_of_a_sum_fade_with_their_age() -> None:
    clock = FakeClock()
    total = FadingSum(clock)
    total.add(8.0)
    clock.now = 2.0
    assert total.value == pytest.approx(8.0 / math.e)

    total.add(1.0)

    assert total.value == pytest.approx(8.0 / math.e + 1.0)
