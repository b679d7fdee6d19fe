import math

import numpy as np
import pytest

from server.decoding.coverage import coverage


def restated(attention: list[list[float]]) -> float:
    """CTranslate2's `compute_coverage_penalty`, word for word."""
    penalty = 0.0
    for column in range(len(attention[0])):
        covered = sum(row[column] for row in attention)
        if covered > 0:
            penalty += math.log(min(covered, 1.0))
    return penalty


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (20, 5)])
def test_it_is_the_sum_of_what_is_attended_to_too_little(shape: tuple[int, int]) -> None:
    attention = np.random.default_rng(1).dirichlet(np.full(shape[1], 0.3), shape[0]).astype(np.float32)

    assert coverage(attention) == pytest.approx(restated(attention.tolist()), abs=1e-5)


def test_what_is_never_attended_to_is_left_out_and_what_is_often_attended_to_is_no_gain() -> None:
    assert coverage(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], np.float32)) == pytest.approx(math.log(0.5))
