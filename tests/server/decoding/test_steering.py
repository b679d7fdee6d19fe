"""Penalties and bans on rows of logits, and steps of searches that ask for more than the best tokens."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.searches import new_search
from server.decoding.steering import BAN, BANNED, Steering, Step, change_step, log_probs_of, steer
from tests.server.decoding.test_beam_search import advance_steered

BOS, EOS, VOCABULARY = 2, 3, 300


def steered(written: list[int], values: list[float] | None = None, **options: Any) -> list[float]:
    """Returns what becomes of a row of logits, by default 0 to 9."""
    logits = np.array([values or range(10)], np.float32)
    Steering(DecodingOptions(**options), EOS).change(Step(logits, *top_of(logits, 1)), 0, written, 1)
    row: list[float] = logits[0].tolist()
    return row


def top_of(logits: NDArray[np.float32], top_k: int) -> tuple[list[list[int]], list[list[float]]]:
    """Returns the best tokens and their log-probabilities, in the plainest way."""
    ids = np.argsort(-logits, axis=1, kind="stable")[:, :top_k]
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=1, keepdims=True)
    log_probs = exact - np.log(np.exp(exact).sum(axis=1, keepdims=True))
    return ids.tolist(), np.take_along_axis(log_probs, ids, axis=1).astype(np.float32).tolist()


def banned(written: list[int], **options: Any) -> list[int]:
    return [token for token, value in enumerate(steered(written, **options)) if value == np.float32(BANNED)]


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


@pytest.mark.parametrize("top_k", [1, 8])
@pytest.mark.parametrize("peak", [0.0, 30.0])
def test_a_step_that_is_steered_is_a_step_of_the_changed_logits(top_k: int, peak: float) -> None:
    chance = np.random.Generator(np.random.Philox(7))
    logits = chance.normal(0, 2, (40, 500)).astype(np.float32)
    logits[:, 9] += np.float32(peak)  # which leaves less than rounding errors when it is banned
    top_ids, top_log_probs = top_of(logits, top_k)
    kept = logits[30:].tolist(), [[*each] for each in top_ids[30:]], [[*each] for each in top_log_probs[30:]]
    tokens = [[9, *map(int, chance.integers(0, 500, 1 + row)), top_ids[row][-1]] for row in range(30)]
    factors = {row: {token: [1.3, BAN][token % 2] for token in own} for row, own in enumerate(tokens)}
    expected = logits.copy()
    for row, own in factors.items():
        for token, by in own.items():
            value = expected[row, token]
            expected[row, token] = BANNED if by is BAN else value / by if value >= 0 else value * by

    for row, own in factors.items():
        steer(Step(logits, top_ids, top_log_probs), row, own, top_k)

    np.testing.assert_allclose(logits, expected, rtol=1e-6)
    expected_ids, expected_log_probs = top_of(logits, top_k)
    assert top_ids == expected_ids
    np.testing.assert_allclose(top_log_probs, expected_log_probs, rtol=1e-6, atol=1e-5)
    assert (logits[30:].tolist(), top_ids[30:], top_log_probs[30:]) == kept


@pytest.mark.parametrize("num_needed", [1, 5, 8])
def test_as_many_of_the_best_tokens_are_right_as_are_needed(num_needed: int) -> None:
    chance = np.random.Generator(np.random.Philox(num_needed))
    logits = chance.normal(0, 2, (40, 500)).astype(np.float32)
    top_ids, top_log_probs = top_of(logits, 8)

    for row, ids in enumerate([*top_ids]):
        factors = {token: [1.1, 2.0, BAN][token % 3] for token in ids[: row % 9]}
        steer(Step(logits, top_ids, top_log_probs), row, factors, num_needed)

    expected_ids, expected_log_probs = top_of(logits, num_needed)
    assert [ids[:num_needed] for ids in top_ids] == expected_ids
    np.testing.assert_allclose(np.array(top_log_probs)[:, :num_needed], expected_log_probs, rtol=1e-6, atol=1e-5)
    assert (np.diff(top_log_probs) <= 0).all(), "the others follow"


@pytest.mark.parametrize("beam_size", [2, 4])
def test_a_beam_that_is_steered_chooses_as_if_it_saw_all_tokens(beam_size: int) -> None:
    chance = np.random.Generator(np.random.Philox(beam_size))
    options = {"beam_size": beam_size, "num_hypotheses": beam_size, "repetition_penalty": 3.0}
    for _ in range(20):
        own, others = search_of(**options), search_of(**options)
        others.top_k = VOCABULARY
        rows = [0]
        while rows:
            logits = chance.normal(0, 1, (len(own.last_ids), VOCABULARY)).astype(np.float32)
            logits[:, :12] += 4  # the search writes these, and then the penalty takes them from the best
            found = [advance_steered(search, logits.copy()) for search in (own, others)]
            rows = found[0]
            assert (found[0], own.last_ids) == (found[1], others.last_ids)
        assert [each.ids for each in own.best()] == [each.ids for each in others.best()]
        assert [each.score for each in own.best()] == pytest.approx([each.score for each in others.best()], abs=1e-6)


def test_the_best_token_is_certain_if_all_others_are_banned() -> None:
    logits = np.array([[0.1, *[0.0] * 8]], np.float32)
    top_ids, top_log_probs = top_of(logits, 1)

    steer(Step(logits, top_ids, top_log_probs), 0, dict.fromkeys(range(1, 9), BAN), 1)

    assert top_ids == [[0]]
    assert top_log_probs == [[pytest.approx(0.0, abs=1e-6)]]


def test_the_best_logits_stay_if_others_are_banned() -> None:
    logits = np.array([[5, 4, 3, 2]], np.float32)
    top_ids, top = [[0, 1]], [[5.0, 4.0]]

    steer(Step(logits, top_ids, top, has_log_probs=False), 0, {3: BAN}, 2)

    assert (top_ids, top) == ([[0, 1]], [[5, 4]])


def test_a_step_without_log_probabilities_has_logits_in_their_place() -> None:
    logits = np.array([[900, -1, 800, 1], [4, 3, 2, 1]], np.float32)  # whose exponentials are none
    top_ids = [[0, 2], [0, 1]]
    top = np.take_along_axis(logits, np.array(top_ids), axis=1).tolist()

    steer(Step(logits, top_ids, top, has_log_probs=False), 0, {0: 1.5, 1: 1.5, 3: BAN}, 2)

    assert (top_ids, top) == ([[2, 0], [0, 1]], [[800, 600], [4, 3]])


def test_a_token_that_was_not_among_the_best_takes_the_place_of_one_that_is_banned() -> None:
    logits = np.array([[5, 4, 3, 2, 1]], np.float32)
    top_ids, top_log_probs = top_of(logits, 2)

    steer(Step(logits, top_ids, top_log_probs), 0, {0: BAN, 2: BAN}, 2)

    assert top_ids == [[1, 3]]
    total = np.exp([4, 2, 1]).sum()
    assert np.exp(top_log_probs[0]) == pytest.approx(np.exp([4, 2]) / total, rel=1e-5)


def test_if_too_few_tokens_are_left_banned_ones_follow() -> None:
    logits = np.array([[5, 4, 3]], np.float32)
    top_ids, top_log_probs = top_of(logits, 2)

    steer(Step(logits, top_ids, top_log_probs), 0, {0: BAN, 1: BAN}, 2)

    assert top_ids == [[2, 0]]
    assert top_log_probs[0] == [pytest.approx(0), pytest.approx(BANNED)]


def test_log_probabilities_are_the_logarithms_of_a_softmax() -> None:
    logits = np.log(np.array([[1, 2, 5], [4, 4, 8]], np.float32)) + np.float32(300)

    found = log_probs_of(Step(logits, *top_of(logits, 2)), [(1, 0), (0, 1), (1, 1), (1, 2)])

    assert np.exp(found) == pytest.approx([4 / 16, 2 / 8, 4 / 16, 8 / 16], rel=1e-4)


def test_a_token_that_cannot_be_written_has_minus_infinity() -> None:
    logits = np.array([[0, -np.inf]], np.float32)

    step = Step(logits, [[0]], [[0.0]])
    assert log_probs_of(step, [(0, 1)]) == [-np.inf]
    steer(step, 0, {1: 1.5}, 1)
    assert logits.tolist() == [[0, np.float32(BANNED)]], "as if it was banned"


def test_the_best_are_in_order_and_of_equals_the_lower_id_is_first() -> None:
    logits = np.array([[1, 5, 2, 5, 2, 9, 1]], np.float32)
    top_ids, top_log_probs = top_of(logits, 5)
    assert top_ids == [[5, 1, 3, 2, 4]]

    steer(Step(logits, top_ids, top_log_probs), 0, {5: 9.0, 1: 5.0, 4: BAN}, 5)

    assert top_ids == [[3, 2, 0, 1, 5]]


@pytest.mark.parametrize(
    ("written", "expected"), [([], [5]), ([5], [6]), ([6], []), ([7, 6], []), ([5, 6], []), ([5, 6, 7], [])]
)
def test_a_beam_that_follows_its_prefix_is_drawn_to_the_next_token_of_it(
    written: list[int], expected: list[int]
) -> None:
    drawn = steered(written, target_prefix=(5, 6), prefix_bias_beta=0.25)

    assert [token for token, value in enumerate(drawn) if value != token] == expected
    assert steered(written, target_prefix=(5, 6)) == [*range(10)]


def test_a_token_that_is_penalised_and_drawn_to_is_both() -> None:
    values = [2.0, 1.0, -1.0]

    drawn = steered([0], values, repetition_penalty=2.0, target_prefix=(0, 1), prefix_bias_beta=0.5)

    shares = np.exp([1.0, 1.0, -1.0])
    assert drawn == pytest.approx([1.0, np.log(shares[1] + shares.sum()), -1.0], rel=1e-6)


@pytest.mark.parametrize("token", [0, 40, 99])
@pytest.mark.parametrize("top_k", [1, 4])
def test_the_token_has_its_part_of_all_probability_beside_its_share_of_the_rest(token: int, top_k: int) -> None:
    logits = np.random.default_rng(token).normal(0, 3, (3, 100)).astype(np.float32)
    logits[1, 99] = BANNED
    expected = np.exp(logits[1].astype(np.float64))
    expected *= 0.75 / expected.sum()
    expected[token] += 0.25
    ids, log_probs = top_of(logits, top_k)
    others = [[*each] for each in ids[::2]], [[*each] for each in log_probs[::2]]

    steer(Step(logits, ids, log_probs), 1, {}, top_k, token, 0.25)

    best = np.argsort(-expected, kind="stable")[:top_k]
    assert ids[1] == best.tolist()
    assert np.exp(log_probs[1]) == pytest.approx(expected[best], rel=1e-4)
    every = log_probs_of(Step(logits, ids, log_probs), [(1, each) for each in range(99)])
    assert np.exp(every) == pytest.approx(expected[:99], rel=1e-4)
    assert (ids[::2], log_probs[::2]) == others


def search_of(**options: Any) -> BeamSearch:
    """Returns a search before its first step."""
    return new_search(DecodingOptions(**options), max_tokens=20, bos_id=BOS, eos_id=EOS, source_ids=(7, EOS))


ASKED: list[dict[str, Any]] = [
    {"beam_size": 1, "suppressed": ((5,), (6,))},
    {"beam_size": 3, "suppressed": ((5,), (6,)), "repetition_penalty": 1.3},
    {"beam_size": 1, "target_prefix": (9,), "prefix_bias_beta": 0.5},
    {"beam_size": 1, "sampling": Sampling(seed=1, temperature=100.0)},
    {"beam_size": 3, "num_hypotheses": 3, "sampling": Sampling(seed=2, top_k=20), "suppressed": ((5,),)},
    {"beam_size": 1, "given_targets": ((11, EOS),)},
    {"beam_size": 1, "num_hypotheses": 2, "return_alternatives": True},
]


def rows_of(step: Step, rows: Iterable[int]) -> list[Any]:
    """Returns copies of what a step has of these rows."""
    return [(step.logits[row].tolist(), [*step.top_ids[row]], [*step.top_log_probs[row]]) for row in rows]


def test_each_search_gets_of_a_step_what_it_would_get_alone() -> None:
    logits = np.random.Generator(np.random.Philox(3)).normal(0, 3, (9, VOCABULARY)).astype(np.float32)
    logits[:, 5] += 10
    rows = [[3], [0], [8], [1], [5], [7], [2]]  # 4 and 6 are those of others
    together = Step(logits.copy(), *top_of(logits, 6))
    plain = rows_of(together, range(9))

    wanted = change_step(list(zip([search_of(**each) for each in ASKED], rows, strict=True)), together)

    for own, options, (row,) in zip(wanted, ASKED, rows, strict=True):
        alone = Step(logits[[row]], *top_of(logits[[row]], 6))
        assert change_step([(search_of(**options), [0])], alone) == [own]
        assert rows_of(together, [row]) == rows_of(alone, [0])
        assert len(own) == ("given_targets" in options or "return_alternatives" in options)
        assert own or rows_of(together, [row]) != [plain[row]]
    assert rows_of(together, (4, 6)) == [plain[4], plain[6]]


def test_all_hypotheses_draw_from_the_first_row_and_then_each_from_its_own() -> None:
    search = search_of(beam_size=3, num_hypotheses=3, sampling=Sampling(seed=2, temperature=2.0))
    logits = np.zeros((1, VOCABULARY), np.float32)
    assert search.top_k == 3
    top_ids, top_log_probs = top_of(logits, 3)

    change_step([(search, [0])], Step(logits, top_ids, top_log_probs))

    assert len({*top_ids[0]}) == 3
    assert top_log_probs[0] == pytest.approx([-np.log(VOCABULARY)] * 3, abs=1e-5)
    assert search.advance(top_ids, top_log_probs) == [0, 0, 0]
    assert (search.last_ids, search.top_k) == (top_ids[0], 1)
    logits = np.full((3, VOCABULARY), -50, np.float32)
    logits[range(3), [10, 20, 30]] = 0.0
    top_ids, top_log_probs = top_of(logits, 1)
    change_step([(search, [2, 0, 1])], Step(logits, top_ids, top_log_probs))
    assert top_ids == [[10], [20], [30]]


def test_a_run_is_allowed_if_no_ban_is_on_any_of_its_tokens_where_it_would_stand() -> None:
    steering = Steering(DecodingOptions(no_repeat_ngram_size=2, suppressed=((7,), (8, 9)), forced_prefix=(4,)), EOS)

    assert steering.allows([5, 6], [6, 5])
    assert not steering.allows([5, 6], [5, 6, 10])
    assert not steering.allows([5], [4, 5, 4])
    assert not any(steering.allows(run, [10]) for run in ([5, 7], [8, 9], [6, 8, 9]))
    assert not steering.allows([9], [8])
