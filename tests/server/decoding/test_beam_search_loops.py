"""Beams that repeat themselves, beams that wait for more hypotheses, and beams over whole rows of logits."""

import numpy as np
import pytest

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason
from tests.server.decoding.test_beam_search import BOS, EOS, advance, advance_steered

SOURCE = (20, 21, 22, EOS)


def new_search(**options: object) -> BeamSearch:
    asked = DecodingOptions(**{"end_loops": True} | options)  # type: ignore[arg-type]
    return BeamSearch(asked, max_tokens=30, bos_id=BOS, eos_id=EOS, source_ids=SOURCE)


@pytest.mark.parametrize("with_tokens", [False, True])
def test_greedy_search_ends_a_loop_and_keeps_the_phrase_once(with_tokens: bool) -> None:
    search = new_search(beam_size=1, with_tokens=with_tokens)

    lived = [search.advance_greedily(token, -0.5) for token in (5, 6, *[7] * 14)]

    assert lived == [True] * 15 + [False]
    (best,) = search.best()
    assert (best.ids, best.finish_reason) == ((5, 6, 7), FinishReason.REPETITION)
    assert best.log_probs == ((-0.5,) * 3 if with_tokens else ())
    assert search.target_ids(search.best()[0]) == [BOS, 5, 6, 7]


def test_greedy_search_goes_on_if_nobody_asks_for_the_end_of_loops() -> None:
    search = new_search(beam_size=1, end_loops=False)

    assert all(search.advance_greedily(7, -0.5) for _ in range(29))
    assert not search.advance_greedily(7, -0.5)
    assert search.best()[0].finish_reason is FinishReason.LENGTH


def test_a_beam_that_repeats_itself_ends_and_the_others_go_on() -> None:
    search = new_search(beam_size=2, num_hypotheses=2, with_tokens=True)
    advance(search, {7: -0.1, 8: -0.2, 9: -9.0, 10: -9.0})
    for step in range(6):
        assert advance(search, {7: -0.1, 8: -9.0}, {30 + step: -0.1, 8: -9.0}) == [0, 1]

    assert advance(search, {7: -0.1, 8: -9.0}, {40: -0.1, 8: -9.0}) == [1], "the first beam is eight times 7"
    assert search.last_ids == [40]
    assert advance(search, {EOS: -0.1, 41: -0.2, 42: -0.3, 43: -0.4}) == [0, 0]
    assert advance(search, {EOS: -0.1, 44: -5.0}, {44: -9.0, 45: -9.0}) == []

    first, second = search.best()
    assert [first.finish_reason, second.finish_reason] == [FinishReason.STOP] * 2
    assert {len(first.ids), len(second.ids)} == {8, 9}


def test_if_all_beams_repeat_themselves_the_best_of_these_is_the_translation() -> None:
    search = new_search(beam_size=2, num_hypotheses=2)
    advance(search, {7: -0.1, 8: -0.2})
    for _ in range(6):
        assert advance(search, {7: -0.1, 9: -9.0}, {8: -0.1, 9: -9.0}) == [0, 1]

    assert advance(search, {7: -0.1, 9: -9.0}, {8: -0.1, 9: -9.0}) == []
    assert [(best.ids, best.finish_reason) for best in search.best()] == [
        ((7,), FinishReason.REPETITION),
        ((8,), FinishReason.REPETITION),
    ]


@pytest.mark.parametrize(("patience", "num_finished"), [(1.0, 1), (1.25, 2), (2.0, 3)])
def test_a_patient_search_waits_for_more_hypotheses(patience: float, num_finished: int) -> None:
    search = new_search(beam_size=2, num_hypotheses=1, patience=patience)
    advance(search, {7: -0.1, 8: -0.2, 9: -0.3, 10: -0.4})
    steps = 0
    while advance(search, {EOS: -0.1, 20 + steps: -0.2}, {30 + steps: -5.0, 50: -6.0}):
        steps += 1

    assert steps == num_finished


def test_a_search_over_logits_is_a_search_over_their_best_tokens() -> None:
    chance = np.random.Generator(np.random.Philox(3))
    steered = new_search(beam_size=3, num_hypotheses=3, min_output_tokens=2, with_tokens=True)
    plain = new_search(beam_size=3, num_hypotheses=3, with_tokens=True)
    assert (steered.is_steered, steered.is_greedy, plain.is_steered) == (True, False, False)
    parents = [0]
    while parents:
        logits = chance.normal(0, 2, (len(steered.last_ids), 12)).astype(np.float32)
        log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        if steered.num_tokens < 2:
            allowed = np.where(np.arange(12) == EOS, -100.0, logits)
            log_probs = allowed - np.log(np.exp(allowed).sum(axis=1, keepdims=True))
        order = np.argsort(-log_probs, axis=1)[:, :6]
        parents = advance_steered(steered, logits)
        assert plain.advance(order.tolist(), np.take_along_axis(log_probs, order, 1).tolist()) == parents

    assert [each.ids for each in steered.best()] == [each.ids for each in plain.best()]
    assert steered.best()[0].score == pytest.approx(plain.best()[0].score, abs=1e-5)
    assert min(len(each.ids) for each in steered.best()) >= 2


def test_a_greedy_search_with_a_penalty_is_steered_behind_its_prefix() -> None:
    search = new_search(beam_size=1, repetition_penalty=2.0, forced_prefix=(8,))

    assert (search.is_steered, search.is_greedy) == (False, False)
    assert advance(search, {9: -0.1}) == [0]
    assert (search.is_steered, search.is_greedy, search.last_ids) == (True, True, [8])
    logits = np.zeros((1, 12), np.float32)
    logits[0, 8], logits[0, 6] = 3.0, 2.0
    assert advance_steered(search, logits) == [0]
    assert search.last_ids == [6], "8 is in the prefix"
