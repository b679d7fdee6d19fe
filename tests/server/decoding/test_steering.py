"""Penalties and bans on rows of logits."""

import math
from typing import Any

import numpy as np
import pytest

from server.decoding.options import DecodingOptions
from server.decoding.steering import BANNED, Steering, best_of, log_softmax

EOS = 3


def steered(written: list[int], values: list[float] | None = None, **options: Any) -> list[float]:
    """Returns what becomes of a row of logits, by default 0 to 9."""
    logits = np.array([values or range(10)], np.float32)
    Steering(DecodingOptions(**options), EOS).steer(logits, [written])
    row: list[float] = logits[0].tolist()
    return row


def banned(written: list[int], **options: Any) -> list[int]:
    return [token for token, value in enumerate(steered(written, **options)) if value == BANNED]


def test_a_penalty_makes_tokens_less_likely_once_each_whatever_their_sign() -> None:
    values = [4.0, -4.0, 2.0, 1.0]

    assert steered([0, 1, 0], values, repetition_penalty=2.0) == [2.0, -8.0, 2.0, 1.0]
    assert steered([], values, repetition_penalty=2.0) == values
    assert steered([1], values, repetition_penalty=2.0, forced_prefix=(2,)) == [4.0, -8.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("size", "written", "expected"),
    [
        (0, [5, 5, 5], []),
        (1, [5, 6, 5], [5, 6]),
        (2, [5, 6, 5], [6]),
        (2, [5, 6, 5, 7, 5], [6, 7]),
        (3, [5, 6, 7, 5, 6], [7]),
        (3, [5, 6, 7, 8, 6], []),
        (3, [5, 6], []),
        (2, [5], []),
    ],
)
def test_no_ngram_is_written_twice(size: int, written: list[int], expected: list[int]) -> None:
    assert banned(written, no_repeat_ngram_size=size) == expected


def test_a_translation_does_not_end_before_its_least_length() -> None:
    assert banned([5, 6], min_output_tokens=3) == [EOS]
    assert banned([5, 6, 7], min_output_tokens=3) == []
    assert banned([5], min_output_tokens=2, forced_prefix=(8, 9)) == [EOS], "the prefix does not count"


def test_suppressed_phrases_are_never_completed() -> None:
    phrases = ((7,), (5, 6, 8), (4, 9), (6, 6))

    assert banned([5, 6], suppressed=phrases) == [6, 7, 8]
    assert banned([6], suppressed=phrases) == [6, 7]
    assert banned([4], suppressed=phrases) == [7, 9]
    assert banned([], suppressed=phrases) == [7]


def test_the_best_are_in_order_and_of_equals_the_lower_id_is_first() -> None:
    logits = np.array([[1, 5, 2, 5, 0], [0, 1, 2, 3, 4]], np.float32)

    ids, best = best_of(logits, 3)
    assert (ids.tolist(), best.tolist()) == ([[1, 3, 2], [4, 3, 2]], [[5, 5, 2], [4, 3, 2]])
    assert best_of(logits, 9)[0].tolist() == [[1, 3, 2, 0, 4], [4, 3, 2, 1, 0]]
    assert best_of(logits, 1)[0].tolist() == [[1], [4]]


@pytest.mark.parametrize("size", [5, 127, 128, 300, 1000, 4096])
@pytest.mark.parametrize("top_k", [1, 2, 8, 16])
def test_the_best_of_large_vocabularies_are_those_of_a_sort(size: int, top_k: int) -> None:
    logits = np.random.Generator(np.random.Philox(size)).normal(0, 2, (6, size)).astype(np.float32)
    logits[0] = np.sort(logits[0])  # all of the best are in the last block

    ids, best = best_of(logits, top_k)

    expected = np.argsort(-logits, axis=1)[:, :top_k]
    assert ids.tolist() == expected.tolist()
    assert best.tolist() == np.take_along_axis(logits, expected, axis=1).tolist()


def test_log_probabilities_sum_to_one_beside_banned_tokens() -> None:
    logits = np.array([[3, BANNED, 1], [300, 301, BANNED]], np.float32)

    log_probs = log_softmax(logits)

    assert np.isfinite(log_probs).all()
    assert np.exp(log_probs).sum(axis=1) == pytest.approx([1, 1])
    assert log_probs[1, 1] - log_probs[1, 0] == pytest.approx(1)


def test_a_beam_that_follows_its_prefix_is_drawn_to_the_next_token_of_it() -> None:
    asked: dict[str, Any] = {"target_prefix": (5, 6), "prefix_bias_beta": 0.25}
    plain = np.exp(log_softmax(np.arange(10, dtype=np.float32)[np.newaxis]))[0]

    for written, token in (([], 5), ([5], 6)):
        expected = 0.75 * plain
        expected[token] += 0.25
        assert np.exp(steered(written, **asked)) == pytest.approx(expected, rel=1e-5)
    for written in ([6], [7, 6], [5, 6], [5, 6, 7]):  # beside the prefix, or behind it
        assert steered(written, **asked) == list(range(10))


def test_what_is_forced_is_drawn_to_even_where_it_is_banned() -> None:
    row = steered([], target_prefix=(7,), prefix_bias_beta=0.5, suppressed=((7,),))

    assert math.exp(row[7]) == pytest.approx(0.5)
    assert sum(map(math.exp, row)) == pytest.approx(1.0)
