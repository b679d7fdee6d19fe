import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, SearchRules
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.steering import Step, change_step
from server.decoding.terms import Replaced, Terms

BOS, EOS = 2, 3
TERMS = Terms((((40,),),), Replaced(((),), ()))


def new_search(beam_size: int = 1, max_tokens: int = 10, length_penalty: float = 1.0) -> BeamSearch:
    options = DecodingOptions(beam_size=beam_size, num_hypotheses=beam_size, length_penalty=length_penalty)
    return BeamSearch(options, max_tokens=max_tokens, bos_id=BOS, eos_id=EOS)


def advance(search: BeamSearch, *rows: dict[int, float]) -> list[int]:
    """Feeds one row of {token: log-probability}, best first, for each live beam."""
    return search.advance([list(row) for row in rows], [list(row.values()) for row in rows])


def advance_steered(search: BeamSearch, logits: NDArray[np.float32]) -> list[int]:
    """Does what a step and the engine do with the logits of the live beams."""
    top_ids = np.argsort(-logits, axis=1, kind="stable")[:, : search.top_k]
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    step = Step(logits, top_ids.tolist(), np.take_along_axis(log_probs, top_ids, axis=1).tolist())
    (wanted,) = change_step([(search, range(len(logits)))], step)
    return search.advance(step.top_ids, step.top_log_probs, wanted)


def test_search_starts_from_bos_with_an_empty_cache() -> None:
    search = new_search(beam_size=4)

    assert search.last_ids == [BOS]
    assert search.num_tokens == 0


def test_greedy_search_needs_one_candidate_and_a_beam_one_more_than_its_width() -> None:
    assert [new_search(beam_size=width).top_k for width in (1, 2, 4)] == [1, 3, 5]


@pytest.mark.parametrize(
    ("options", "placeholders", "top_k"),
    [
        ({"beam_size": 4}, {}, 5),
        ({"beam_size": 4, "repetition_penalty": 1.5}, {}, 5),
        ({"beam_size": 4, "terms": TERMS}, {}, 5),
        ({"beam_size": 4}, {5: 1}, 8),
        ({"beam_size": 1, "repetition_penalty": 1.5}, {}, 1),
    ],
)
def test_a_beam_needs_one_more_of_the_best_tokens_than_its_width_or_twice_its_width_with_placeholders(
    options: dict[str, Any], placeholders: dict[int, int], top_k: int
) -> None:
    search = BeamSearch(DecodingOptions(**options), max_tokens=10, bos_id=BOS, eos_id=EOS, placeholders=placeholders)

    assert search.top_k == top_k


def test_greedy_search_follows_the_best_token_until_eos() -> None:
    search = new_search()

    assert advance(search, {7: -0.5}) == [0]
    assert search.last_ids == [7]
    assert advance(search, {8: -0.25}) == [0]
    assert advance(search, {EOS: -0.25}) == []

    (best,) = search.best()
    assert best.ids == (7, 8)
    assert best.finish_reason is FinishReason.STOP
    assert best.score == pytest.approx(-1.0 / 3)


def test_limit_ends_a_sentence_that_has_not_ended() -> None:
    search = new_search(max_tokens=2)

    assert advance(search, {7: -1.0}) == [0]
    assert advance(search, {8: -1.0}) == []

    (best,) = search.best()
    assert best.ids == (7, 8)
    assert best.finish_reason is FinishReason.LENGTH
    assert best.score == pytest.approx(-1.0)


def test_a_sentence_that_ends_at_its_limit_is_complete() -> None:
    search = new_search(max_tokens=2)
    advance(search, {7: -1.0})

    assert advance(search, {EOS: -1.0}) == []
    assert [(best.ids, best.finish_reason) for best in search.best()] == [((7,), FinishReason.STOP)]


def test_beam_grows_from_one_row_to_its_width() -> None:
    search = new_search(beam_size=2)

    parents = advance(search, {7: -0.1, 8: -0.2, 9: -3.0, 10: -4.0})

    assert parents == [0, 0]
    assert search.last_ids == [7, 8]


def test_beams_are_reordered_by_total_log_probability() -> None:
    search = new_search(beam_size=2)
    advance(search, {7: -0.1, 8: -0.2, 9: -3.0, 10: -4.0})

    parents = advance(search, {11: -5.0, 12: -6.0, 13: -7.0, 14: -8.0}, {15: -0.1, 16: -0.2, 17: -9.0, 18: -9.5})

    assert parents == [1, 1]
    assert search.last_ids == [15, 16]


def test_equal_candidates_go_to_the_better_beam_first() -> None:
    search = new_search(beam_size=2)
    advance(search, {7: -1.0, 8: -1.0, 9: -3.0, 10: -4.0})

    parents = advance(search, {11: -1.0, 12: -2.0, 13: -3.0, 14: -4.0}, {15: -1.0, 16: -2.0, 17: -3.0, 18: -4.0})

    assert parents == [0, 1]
    assert search.last_ids == [11, 15]


def test_eos_outside_the_best_candidates_does_not_finish_a_hypothesis() -> None:
    search = new_search(beam_size=2)

    parents = advance(search, {7: -0.1, 8: -0.2, EOS: -0.3, 10: -4.0})

    assert parents == [0, 0]
    assert search.best() == []


def test_search_ends_when_the_beam_is_full_of_finished_hypotheses() -> None:
    search = new_search(beam_size=2, length_penalty=0.0)
    assert advance(search, {EOS: -0.1, 7: -0.2, 8: -0.3, 9: -0.4}) == [0, 0]
    parents = advance(search, {EOS: -0.05, 10: -0.1, 11: -3.0, 12: -4.0}, {13: -5.0, 14: -6.0, 15: -7.0, 16: -8.0})

    assert parents == []
    assert [hypothesis.ids for hypothesis in search.best()] == [(), (7,)]


def test_hypotheses_that_share_a_prefix_go_on_apart() -> None:
    search = new_search(beam_size=2, length_penalty=0.0)
    advance(search, {7: -0.1, 8: -5.0, 9: -6.0, 10: -7.0})

    assert advance(search, {11: -0.1, 12: -0.2, 13: -3.0, 14: -4.0}, {15: -9.0, 16: -9.0, 17: -9.0, 18: -9.0}) == [0, 0]
    advance(search, {EOS: -0.1, 20: -9.0, 21: -9.0, 22: -9.0}, {EOS: -0.1, 23: -9.0, 24: -9.0, 25: -9.0})

    assert [hypothesis.ids for hypothesis in search.best()] == [(7, 11), (7, 12)]


@pytest.mark.parametrize(("length_penalty", "best"), [(0.0, (7,)), (3.0, (8, 9, 10))])
def test_length_penalty_decides_between_short_and_long(length_penalty: float, best: tuple[int, ...]) -> None:
    search = new_search(beam_size=2, length_penalty=length_penalty)
    advance(search, {7: -1.0, 8: -1.0, 9: -9.0, 10: -9.0})
    advance(search, {EOS: -0.5, 20: -9.0, 21: -9.0, 22: -9.0}, {9: -0.5, 23: -8.0, 24: -8.0, 25: -8.0})
    advance(search, {10: -0.5, 30: -9.0, 31: -9.0, 32: -9.0}, {33: -9.0, 34: -9.0, 35: -9.0, 36: -9.0})
    assert advance(search, {EOS: -0.5, 40: -9.0, 41: -9.0, 42: -9.0}, {43: -9, 44: -9, 45: -9, 46: -9}) == []

    assert search.best()[0].ids == best


def test_beams_have_positions_in_common_until_they_part() -> None:
    search = new_search(beam_size=2)
    advance(search, {7: -0.1, 8: -0.2})
    assert advance(search, {9: -0.1, 10: -0.3}, {9: -0.9, 10: -1.0}) == [0, 0]  # from bos 7 and bos 8
    assert search.num_common(0, 1) == 1

    assert advance(search, {11: -0.1, 12: -0.5}, {11: -0.1, 12: -0.5}) == [0, 1]  # from bos 7 9 and bos 7 10
    assert (search.num_common(0, 1), search.num_common(1, 0), search.num_common(1, 1)) == (2, 2, 3)


def test_greedy_search_is_a_beam_of_1() -> None:
    steps = [(7, -0.5), (8, -0.25), (EOS, -0.125)]
    for max_tokens in (2, 9):
        beam, greedy = (new_search(max_tokens=max_tokens) for _ in range(2))
        for token, log_prob in steps[:max_tokens]:
            lives_on = greedy.advance_greedily(token, log_prob)
            assert lives_on == bool(advance(beam, {token: log_prob}))
        assert not lives_on
        assert greedy.is_greedy
        assert greedy.best() == beam.best()


def test_without_scores_there_are_none() -> None:
    search = BeamSearch(DecodingOptions(beam_size=1, with_scores=False), max_tokens=9, bos_id=BOS, eos_id=EOS)

    search.advance_greedily(EOS, 5.0)  # a logit

    assert [hypothesis.score for hypothesis in search.best()] == [0.0]


STOP, LENGTH = FinishReason.STOP, FinishReason.LENGTH
VOCAB = 9


def log_probs_after(ids: Sequence[int], seed: int, eos_share: float) -> list[float]:
    """Returns what a network that knows nothing but chance says after some ids; how likely eos is grows with them."""
    chance = random.Random(f"{seed} {list(ids)}")
    weights = [chance.random() ** 3 + 1e-6 for _ in range(VOCAB)]
    weights[EOS] += eos_share * len(ids)
    return [math.log(weight / sum(weights)) for weight in weights]


def run(options: DecodingOptions, max_tokens: int, rules: SearchRules, seed: int, eos_share: float) -> list[Hypothesis]:
    """Searches step by step, as an engine does."""
    search = BeamSearch(options, max_tokens=max_tokens, bos_id=BOS, eos_id=EOS, rules=rules)
    fed = [[BOS]]
    for _ in range(max_tokens):
        rows = [log_probs_after(ids, seed, eos_share) for ids in fed]
        best = [sorted(range(VOCAB), key=lambda token: -row[token])[: search.top_k] for row in rows]
        top = [[row[token] for token in ids] for row, ids in zip(rows, best, strict=True)]
        if search.is_greedy:
            parents = [0] if search.advance_greedily(best[0][0], top[0][0]) else []
        else:
            parents = search.advance(best, top)
        if not parents:
            return search.best()
        fed = [[*fed[parent], token] for parent, token in zip(parents, search.last_ids, strict=True)]
    raise AssertionError("the search did not end")


def restated(options: DecodingOptions, max_tokens: int, rules: SearchRules, seed: int, eos_share: float) -> list[Any]:
    """Says again, over whole sequences, what the search must find: its rules for forced ids, eos and early stopping.

    Without early stopping this is the loop of Hugging Face's `generate`: forced tokens are log-probabilities of 0 among
    infinite ones, and what is finished competes with what was.
    """
    width, penalty, prefix = options.beam_size, options.length_penalty, options.forced_prefix
    forced = dict(enumerate(prefix)) | ({max_tokens - 1: EOS} if rules.forced_eos else {})

    def scores(ids: tuple[int, ...]) -> list[float]:
        if len(ids) not in forced:
            return log_probs_after([BOS, *ids], seed, eos_share)
        return [0.0 if token == forced[len(ids)] else -math.inf for token in range(VOCAB)]

    def text(ids: tuple[int, ...]) -> tuple[int, ...]:
        return ids[len(prefix) : -1] if ids[-1] == EOS else ids[len(prefix) :]

    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...], FinishReason]] = []
    for length in range(1, max_tokens + 1):
        extended = [(total + value, (*ids, token)) for total, ids in live for token, value in enumerate(scores(ids))]
        ranked = sorted((each for each in extended if each[0] > -math.inf), key=lambda each: -each[0])[: 2 * width]
        new = [
            (total / length**penalty, text(ids), STOP if ids[-1] == EOS and length - 1 not in forced else LENGTH)
            for total, ids in ranked[:width]
            if ids[-1] == EOS or length == max_tokens
        ]
        live = [each for each in ranked if each[1][-1] != EOS][:width]
        if rules.early_stopping:
            finished += new[: width - len(finished)]
            if len(finished) == width:
                break
        else:
            finished = sorted([*finished, *new], key=lambda each: -each[0])[:width]
            if len(finished) == width and live and live[0][0] / length**penalty <= finished[-1][0]:
                break
    return sorted(finished, key=lambda each: -each[0])


@pytest.mark.parametrize("prefix", [(), (5,), (5, 6)])
@pytest.mark.parametrize("forced_eos", [False, True])
@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_search_finds_what_its_rules_say(
    width: int, early_stopping: bool, forced_eos: bool, prefix: tuple[int, ...]
) -> None:
    rules = SearchRules(early_stopping=early_stopping, forced_eos=forced_eos)
    reasons: Counter[FinishReason] = Counter()
    for seed in range(60):
        penalty, eos_share = (0.0, 0.6, 1.0, 2.0)[seed % 4], (0.02, 0.3)[seed % 2]
        options = DecodingOptions(beam_size=width, num_hypotheses=width, length_penalty=penalty, forced_prefix=prefix)
        max_tokens = len(prefix) + 2 + seed % 9

        found = run(options, max_tokens, rules, seed, eos_share)
        expected = restated(options, max_tokens, rules, seed, eos_share)

        assert [(each.ids, each.finish_reason) for each in found] == [each[1:] for each in expected], seed
        assert [each.score for each in found] == pytest.approx([each[0] for each in expected])
        reasons.update(each.finish_reason for each in found)
    assert min(reasons[STOP], reasons[LENGTH]) > 5  # both were tried


def test_the_rules_are_told_apart_by_what_they_find() -> None:
    found = {
        rules: [run(DecodingOptions(beam_size=4), 6, rules, seed, 0.05)[0].ids for seed in range(60)]
        for rules in (SearchRules(), SearchRules(early_stopping=False), SearchRules(forced_eos=True))
    }

    assert len({tuple(ids) for ids in found.values()}) == 3


def test_a_forced_prefix_is_fed_and_no_part_of_the_translation() -> None:
    options = DecodingOptions(beam_size=1, forced_prefix=(5, 6))
    search = BeamSearch(options, max_tokens=9, bos_id=BOS, eos_id=EOS)

    assert not search.is_greedy
    assert advance(search, {EOS: -0.1}) == [0]
    assert (search.last_ids, search.is_greedy) == ([5], False)
    assert advance(search, {7: -0.1}) == [0]
    assert (search.last_ids, search.is_greedy) == ([6], True)
    assert search.advance_greedily(8, -1.0)
    assert not search.advance_greedily(EOS, -1.0)
    assert search.best() == [Hypothesis((8,), -2.0 / 4, FinishReason.STOP)]


def test_beams_behind_a_prefix_have_it_in_common() -> None:
    options = DecodingOptions(beam_size=2, forced_prefix=(5,))
    search = BeamSearch(options, max_tokens=9, bos_id=BOS, eos_id=EOS)
    advance(search, {9: -0.1, 10: -0.2})
    advance(search, {7: -0.1, 8: -0.2})
    advance(search, {9: -0.1, 10: -0.3}, {9: -0.9, 10: -1.0})

    assert search.num_common(0, 1) == 2  # bos and 5
