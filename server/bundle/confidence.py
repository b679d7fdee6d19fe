"""What a bundle says of confidence: how the log-probabilities of a translation's tokens become a number from 0 to 1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """A logistic function of a translation's token log-probabilities, fitted on sentences with references.

    Attributes:
        bias: added to the sum.
        mean, minimum, log_tokens: weights of the mean log-probability, of the least one, and of the natural logarithm
            of the number of tokens, eos included.
        threshold: chrF, 0 to 100, that it estimates a translation to have at least.
        calibration_error: mean distance between what it said and how many translations reached the threshold, 0 to 1,
            on sentences that it was not fitted on.
        num_sentences: that it was fitted on.
    """

    bias: float
    mean: float
    minimum: float
    log_tokens: float
    threshold: float
    calibration_error: float
    num_sentences: int

    def of(self, log_probs: Sequence[float]) -> float:
        """Returns the confidence, 0 to 1, in a translation whose tokens, at least one, have these log-probabilities."""
        weights = self.mean, self.minimum, self.log_tokens
        total = self.bias + sum(weight * each for weight, each in zip(weights, features(log_probs), strict=True))
        return 0.5 + 0.5 * math.tanh(0.5 * total)  # the logistic function, which cannot overflow so


def features(log_probs: Sequence[float]) -> tuple[float, float, float]:
    """Returns what is weighed: mean and least log-probability, and the logarithm of their number, at least one."""
    return sum(log_probs) / len(log_probs), min(log_probs), math.log(len(log_probs))
