"""Scores of given translations: the torch model's log-probabilities, and what a search says of its own translation."""

import numpy as np
import pytest
import torch

from model.data import pad
from model.transformer import Transformer
from server.bundle.bundle import Bundle
from server.decoding.result import Hypothesis
from tests.parity.test_continuous_batching import Stepper

BEAMS = (1, 4)


def by_torch(model: Transformer, source: list[int], target: tuple[int, ...]) -> list[float]:
    """Log-probabilities of a target, eos included, by teacher forcing."""
    config = model.config
    source_ids = pad([source], config.pad_id)
    fed = torch.tensor([[config.bos_id, *target[:-1]]])
    with torch.no_grad():
        log_probs = model(source_ids, fed).log_softmax(-1)[0]
    return [float(log_probs[place, token]) for place, token in enumerate(target)]


def given_of(sources: list[list[int]], size: int) -> list[tuple[int, ...]]:
    random = np.random.default_rng(5)
    return [(*random.integers(4, size, random.integers(0, 12)).tolist(), 3) for _ in sources]


@pytest.mark.parametrize(("variant", "tolerance"), [("cpu-fp32", 1e-4), ("cuda-fp16", 0.05), ("cpu-int8", 0.6)])
def test_given_translations_have_the_models_log_probabilities(
    tiny_model: Transformer, tiny_bundle: Bundle, sources: list[list[int]], variant: str, tolerance: float
) -> None:
    stepper = Stepper(tiny_bundle, variant)
    targets = given_of(sources[:24], tiny_model.config.vocab_size)

    futures = []
    for index, (source, target) in enumerate(zip(sources, targets, strict=False)):
        futures.append(stepper.submit(source, given_targets=(target,), with_tokens=True))
        stepper.submit(source, beam_size=BEAMS[index % 2])  # beside other searches
        stepper.step(index % 3)
    stepper.finish()

    for source, target, future in zip(sources, targets, futures, strict=False):
        found = future.result(0).hypotheses[0]
        assert (*found.ids, 3) == target
        assert np.mean(np.abs(np.array(found.log_probs) - by_torch(tiny_model, source, target))) < tolerance
        assert found.score == pytest.approx(sum(found.log_probs) / len(target))


def test_tokens_of_a_search_have_the_models_log_probabilities(
    tiny_model: Transformer, tiny_bundle: Bundle, sources: list[list[int]]
) -> None:
    stepper = Stepper(tiny_bundle, "cpu-fp32")
    futures = [
        stepper.submit(source, beam_size=BEAMS[index % 2], with_tokens=True)
        for index, source in enumerate(sources[:20])
    ]
    stepper.finish()

    for source, future in zip(sources, futures, strict=False):
        found = future.result(0).hypotheses[0]
        target = (*found.ids, 3)[: len(found.log_probs)]
        np.testing.assert_allclose(found.log_probs, by_torch(tiny_model, source, target), atol=1e-4)


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
def test_a_models_own_translation_has_the_score_of_its_search(
    tiny_bundle: Bundle, sources: list[list[int]], variant: str
) -> None:
    stepper = Stepper(tiny_bundle, variant)
    found: list[Hypothesis] = []
    for source in sources[:20]:
        future = stepper.submit(source, length_penalty=0.6, with_tokens=True)
        stepper.finish()
        found.append(future.result(0).hypotheses[0])
    ended = [(source, each) for source, each in zip(sources, found, strict=False) if each.finish_reason.value == "stop"]
    assert len(ended) > 10

    for source, each in ended:
        future = stepper.submit(source, length_penalty=0.6, with_tokens=True, given_targets=((*each.ids, 3),))
        stepper.finish()
        scored = future.result(0).hypotheses[0]
        np.testing.assert_allclose(scored.log_probs, each.log_probs, atol=1e-4)
        assert scored.score == pytest.approx(each.score, abs=1e-4)
