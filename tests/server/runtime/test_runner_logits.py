"""The logits of a step, and the log-probabilities that follow from them, of real graphs."""

import numpy as np
import pytest

from server.bundle.bundle import Bundle
from server.decoding.steering import Step, log_probs_of
from server.network import Decoder, Runner, StepInputs, StepKind
from server.runtime.runner import HostRunner, open_runner


def stepped(runner: Runner, top_k: int) -> tuple[Decoder, np.ndarray, np.ndarray]:
    """Takes two steps with three sentences, and returns copies of what the last has chosen."""
    decoder = runner.open_decoder(StepKind.PLAIN, 4)
    sources = [(5, 6, 7, 3), (8, 9, 3), (11, 12, 13, 14, 3)]
    lengths = np.array(list(map(len, sources)), np.int32)
    ids = np.array([[*source, *[0] * (5 - len(source))] for source in sources])
    decoder.reserve(3, 2, 5)
    decoder.admit(0, runner.encode(ids, lengths), sources)
    for past, fed in enumerate(([2, 2, 2], [20, 21, 22])):
        decoder.reserve(3, past + 1, 5)
        inputs = StepInputs(np.array(fed), np.full(3, past, np.int32), lengths, top_k, with_log_probs=True)
        top_ids, top_log_probs = decoder.step(inputs)
    return decoder, top_ids.copy(), top_log_probs.copy()


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8", "cuda-fp16"])
def test_log_probabilities_of_the_best_tokens_are_what_the_step_has_returned(tiny_bundle: Bundle, variant: str) -> None:
    decoder, top_ids, top_log_probs = stepped(open_runner(tiny_bundle, variant, "cpu"), top_k=8)
    logits = decoder.logits()

    for place in range(8):
        found = log_probs_of(
            Step(logits, top_ids.tolist(), top_log_probs.tolist()),
            [(row, top_ids.item(row, place)) for row in (2, 0, 1)],
        )
        np.testing.assert_allclose(found, top_log_probs[[2, 0, 1], place], atol=2e-3 if "fp16" in variant else 2e-5)


def test_they_sum_to_one_over_the_vocabulary(host_runner: HostRunner) -> None:
    decoder, top_ids, top_log_probs = stepped(host_runner, top_k=1)
    size = host_runner.dimensions.vocab_size

    step = Step(decoder.logits(), top_ids.tolist(), top_log_probs.tolist())
    found = log_probs_of(step, [(1, each) for each in range(size)])

    assert np.exp(found).sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("variant", ["cpu-fp32", "cuda-fp16"])
def test_logits_have_the_same_softmax_and_may_be_changed(tiny_bundle: Bundle, variant: str) -> None:
    decoder, top_ids, top_log_probs = stepped(open_runner(tiny_bundle, variant, "cpu"), top_k=8)

    logits = decoder.logits()

    assert logits.shape == (3, open_runner(tiny_bundle, variant, "cpu").dimensions.vocab_size)
    exact = logits.astype(np.float64)
    log_probs = exact - np.log(np.exp(exact).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(np.take_along_axis(log_probs, top_ids, axis=1), top_log_probs, atol=2e-3)
    logits[:] = 0
    lengths = np.array([4, 3, 5], np.int32)
    ids, _ = decoder.step(StepInputs(np.array([20, 21, 22]), np.full(3, 1, np.int32), lengths, 8))
    assert ids.tolist() == top_ids.tolist()
