import math

import pytest

from server.bundle.confidence import Confidence, features


def confidence_of(bias: float, mean: float, minimum: float, log_tokens: float) -> Confidence:
    return Confidence(
        bias=bias,
        mean=mean,
        minimum=minimum,
        log_tokens=log_tokens,
        threshold=50.0,
        calibration_error=0.03,
        num_sentences=500,
    )


def test_features_are_mean_minimum_and_logarithm_of_the_length() -> None:
    assert features((-1.0, -2.0, -6.0)) == pytest.approx((-3.0, -6.0, math.log(3)))


def test_confidence_is_the_logistic_function_of_the_weighted_sum() -> None:
    confidence = confidence_of(1.0, 2.0, 0.5, -1.0)

    total = 1.0 + 2.0 * -0.75 + 0.5 * -1.0 - math.log(2)
    assert confidence.of((-0.5, -1.0)) == pytest.approx(1 / (1 + math.exp(-total)))


def test_however_unlikely_a_translation_is_it_has_a_confidence() -> None:
    confidence = confidence_of(0.0, 5.0, 0.0, 0.0)

    assert confidence.of((-1e6,)) == 0.0
    assert confidence.of((0.0,)) == 0.5
