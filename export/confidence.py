"""How sure a model is of its translations: a logistic function of token log-probabilities, fitted on references.

A translation counts as good if its chrF to the reference is at least `THRESHOLD`. The function ranks translations of
texts like the dev set that it was fitted on. For other texts it ranks, and is no probability.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import sacrebleu
from numpy.typing import NDArray

from export.examples import Example
from server.bundle.confidence import Confidence, features
from server.bundle.manifest import Manifest
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.decoding.result import Hypothesis

logger = logging.getLogger(__name__)

THRESHOLD = 50.0  # chrF: a little under the mean of good models on sentences, so that both sides have examples
_FOLDS = 10
# Of translations, ordered by confidence, that are compared with what was said of them. With half as many, chance alone
# makes an error of 0.05; with twice as many, an error at one end of the scale is averaged away.
_BIN_SIZE = 100
# Of the squared weights: half of it or twice changes nothing that was measured, but none lets weights grow without end
# where one feature parts all good translations from all others.
_PENALTY = 1.0
_ROUNDS = 30  # of Newton's method, which needs about 6

Array = NDArray[np.float64]


def usual_search(manifest: Manifest) -> DecodingOptions:
    """Returns the search that a model makes unless a request says otherwise, with tokens if the model has steps."""
    return DecodingOptions(
        beam_size=min(manifest.search.beam_size or 4, manifest.limits.max_beam_size),
        length_penalty=manifest.search.length_penalty,
        with_tokens=not manifest.is_one_pass,
    )


def with_confidence(
    tokenizer: Tokenizer, manifest: Manifest, examples: Sequence[Example], best: Sequence[Hypothesis]
) -> Manifest:
    """Returns a model's manifest with how sure it is of the translations of its usual search.

    Args:
        tokenizer: of the model.
        manifest: of the model.
        examples: sentences with references.
        best: their translations by `usual_search`.
    """
    good = are_good([tokenizer.decode(each.ids) for each in best], [each.reference for each in examples])
    confidence = fit(best, good)
    logger.info("confidence: calibration error %.3f", confidence.calibration_error)
    return replace(manifest, confidence=confidence)


def are_good(translations: Sequence[str], references: Sequence[str]) -> NDArray[np.bool_]:
    """Returns which translations come near enough to their references."""
    chrf = sacrebleu.metrics.CHRF()
    pairs = zip(translations, references, strict=True)
    return (
        np.array([chrf.sentence_score(translation, [reference]).score for translation, reference in pairs]) >= THRESHOLD
    )


def fit(translations: Sequence[Hypothesis], good: NDArray[np.bool_]) -> Confidence:
    """Returns the function that fits best, with the error that its like have on translations they were not fitted on.

    Args:
        translations: with log-probabilities of their tokens.
        good: which of them are good.
    """
    inputs = np.array([features(each.log_probs) for each in translations])
    bias, mean, minimum, log_tokens = (round(float(weight), 4) for weight in _weights(inputs, good))
    return Confidence(
        bias=bias,
        mean=mean,
        minimum=minimum,
        log_tokens=log_tokens,
        threshold=THRESHOLD,
        calibration_error=round(cross_validated_error(inputs, good), 4),
        num_sentences=len(translations),
    )


def cross_validated_error(inputs: Array, good: NDArray[np.bool_]) -> float:
    """Returns the calibration error of what is said of each fold by a function that was fitted on the others.

    Args:
        inputs: [n, 3], as `features` returns them.
        good: [n].
    """
    fold = np.random.default_rng(0).permutation(len(good)) % _FOLDS
    said = np.zeros(len(good))
    for number in range(_FOLDS):
        is_held_out = fold == number
        said[is_held_out] = _logistic(inputs[is_held_out], _weights(inputs[~is_held_out], good[~is_held_out]))
    return calibration_error(said, good)


def calibration_error(said: Array, good: NDArray[np.bool_]) -> float:
    """Returns the expected calibration error: over bins of equal size by what was said, 0 to 1."""
    bins = np.array_split(np.argsort(said, kind="stable"), max(1, len(said) // _BIN_SIZE))
    return float(sum(abs(said[each].sum() - good[each].sum()) for each in bins) / len(said))


def _weights(inputs: Array, good: NDArray[np.bool_]) -> Array:
    """Returns bias and weights of the logistic regression, by Newton's method on inputs of mean 0 and deviation 1."""
    center, scale = inputs.mean(axis=0), inputs.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    scaled = np.column_stack([np.ones(len(inputs)), (inputs - center) / scale])
    weights, penalty = np.zeros(scaled.shape[1]), np.diag([0.0, *[_PENALTY] * inputs.shape[1]])
    penalty[0, 0] = 1e-6  # so that it ends where all are good, or none
    for _ in range(_ROUNDS):
        said = _sigmoid(scaled @ weights)
        gradient = scaled.T @ (good - said) - penalty @ weights
        curvature = (scaled * (said * (1 - said))[:, None]).T @ scaled + penalty
        weights += np.linalg.solve(curvature, gradient)
    of_inputs = weights[1:] / scale
    return np.array([weights[0] - of_inputs @ center, *of_inputs])


def _logistic(inputs: Array, weights: Array) -> Array:
    return _sigmoid(weights[0] + inputs @ weights[1:])


def _sigmoid(total: Array) -> Array:
    sigmoid: Array = 0.5 + 0.5 * np.tanh(0.5 * total)
    return sigmoid
