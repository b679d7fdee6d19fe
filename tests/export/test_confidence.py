"""The logistic fit on translations whose quality follows a known law, and on those of a real model."""

import dataclasses

import numpy as np
import pytest

from export.confidence import are_good, calibration_error, fit, usual_search, with_confidence
from export.examples import encode_examples
from export.id_translator import open_translator
from export.subject import DevSet
from server.bundle.bundle import Bundle
from server.bundle.tokenizer import Tokenizer
from server.decoding.result import FinishReason, Hypothesis
from server.runtime.runner import open_runner


def translations_of(number: int) -> list[Hypothesis]:
    random = np.random.default_rng(3)
    rows = [tuple((-random.exponential(1.0, random.integers(2, 20))).tolist()) for _ in range(number)]
    return [Hypothesis((), 0.0, FinishReason.STOP, log_probs) for log_probs in rows]


def test_a_known_law_is_found_again() -> None:
    translations = translations_of(4000)
    means = np.array([np.mean(each.log_probs) for each in translations])
    probability = 1 / (1 + np.exp(-(2.0 + 2.5 * means)))
    good = np.random.default_rng(4).random(len(means)) < probability

    confidence = fit(translations, good)

    assert confidence.num_sentences == 4000
    assert confidence.calibration_error < 0.04
    said = np.array([confidence.of(each.log_probs) for each in translations])
    assert np.abs(said - probability).mean() < 0.03
    assert (confidence.bias, confidence.mean) == pytest.approx((2.0, 2.5), abs=0.5)


@pytest.mark.parametrize("all_good", [False, True])
def test_where_all_are_alike_it_says_so(all_good: bool) -> None:
    translations = translations_of(100)

    confidence = fit(translations, np.full(100, all_good))

    assert confidence.of(translations[0].log_probs) == pytest.approx(float(all_good), abs=0.01)


def test_the_error_is_how_far_off_the_bins_are() -> None:
    said = np.repeat([0.25, 0.75], 100)
    good = np.concatenate([np.arange(100) < 25, np.arange(100) < 55])

    assert calibration_error(said, good) == pytest.approx((0.0 + 0.2) / 2)


def test_good_is_near_the_reference() -> None:
    assert are_good(["Ein Hund läuft.", "Etwas anderes"], ["Ein Hund läuft.", "Ein Hund läuft."]).tolist() == [
        True,
        False,
    ]


def test_a_model_is_measured_if_there_are_references(tiny_bundle: Bundle, dev_set: DevSet) -> None:
    without = dataclasses.replace(tiny_bundle.manifest, confidence=None)
    tokenizer = Tokenizer(without, tiny_bundle.read)
    examples = encode_examples(dev_set, without, tokenizer)

    with open_translator(open_runner(tiny_bundle, "cpu-fp32", "cpu"), tiny_bundle) as translator:
        best = translator([list(each.source_ids) for each in examples], usual_search(without))
    measured = with_confidence(tokenizer, without, examples, best)

    assert measured.confidence is not None
    assert measured.confidence.num_sentences == len(examples)
    assert tiny_bundle.manifest.confidence == measured.confidence, "the export has measured the same"
