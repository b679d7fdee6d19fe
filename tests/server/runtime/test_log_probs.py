"""Log-probabilities of given tokens: on logits that are known, and on the steps of real graphs."""

import numpy as np
import pytest

from server.bundle.bundle import Bundle
from server.network import Decoder, Runner, StepInputs, StepKind
from server.runtime.log_probs import log_probs_of
from server.runtime.runner import HostRunner, open_runner


def test_they_are_the_logarithms_of_a_softmax() -> None:
    logits = np.log(np.array([[1, 2, 5], [4, 4, 8]], np.float32)) + np.float32(300)
    best_ids, best_log_probs = np.array([2, 2]), np.log(np.array([5 / 8, 8 / 16], np.float32))

    found = log_probs_of(logits, best_ids, best_log_probs, [1, 0, 1, 1], [0, 1, 1, 2])

    assert np.exp(found) == pytest.approx([4 / 16, 2 / 8, 4 / 16, 8 / 16], rel=1e-4)


def test_a_token_that_cannot_be_written_has_minus_infinity() -> None:
    logits = np.array([[0, -np.inf]], np.float32)

    assert log_probs_of(logits, np.array([0]), np.zeros(1, np.float32), [0], [1]).tolist() == [-np.inf]


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
def test_those_of_the_best_tokens_are_what_the_step_has_returned(tiny_bundle: Bundle, variant: str) -> None:
    decoder, top_ids, top_log_probs = stepped(open_runner(tiny_bundle, variant, "cpu"), top_k=8)

    for place in range(8):
        found = decoder.log_probs([2, 0, 1], top_ids[[2, 0, 1], place].tolist())
        np.testing.assert_allclose(found, top_log_probs[[2, 0, 1], place], atol=2e-3 if "fp16" in variant else 2e-5)
    again = decoder.log_probs([1], [int(top_ids[1, 3])])
    np.testing.assert_allclose(again, top_log_probs[1:2, 3], atol=2e-3)


def test_they_sum_to_one_over_the_vocabulary(host_runner: HostRunner) -> None:
    decoder, _, _ = stepped(host_runner, top_k=1)
    size = host_runner.dimensions.vocab_size

    assert np.exp(decoder.log_probs([1] * size, list(range(size)))).sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("variant", ["cpu-fp32", "cuda-fp16"])
def test_whole_rows_of_logits_have_the_same_softmax(tiny_bundle: Bundle, variant: str) -> None:
    decoder, top_ids, top_log_probs = stepped(open_runner(tiny_bundle, variant, "cpu"), top_k=8)

    logits = decoder.logits([2, 0])

    for row, own in zip((2, 0), logits.astype(np.float64), strict=True):
        log_probs = own - np.log(np.exp(own).sum())
        np.testing.assert_allclose(log_probs[top_ids[row]], top_log_probs[row], atol=2e-3)
    logits[:] = 0  # the caller's own
    assert decoder.logits([2]).any()
