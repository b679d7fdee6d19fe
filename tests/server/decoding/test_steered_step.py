"""Searches that ask for more of a step than its best tokens, all at once."""

from typing import Any

import numpy as np
import pytest

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions, Sampling
from server.decoding.searches import new_search
from server.decoding.steered_step import change_step
from server.decoding.steering import Step
from tests.server.decoding.test_steering import top_of

BOS, EOS, VOCABULARY = 2, 3, 300


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


def test_each_search_gets_of_a_step_what_it_would_get_alone() -> None:
    logits = np.random.Generator(np.random.Philox(3)).normal(0, 3, (9, VOCABULARY)).astype(np.float32)
    logits[:, 5] += 10
    rows = [[3], [0], [8], [1], [5], [7], [2]]  # 4 and 6 are those of others
    together = Step(logits.copy(), *top_of(logits, 6))
    plain = [each.tolist() for each in together[:3]]

    wanted = change_step(list(zip([search_of(**each) for each in ASKED], rows, strict=True)), together)

    for own, options, (row,) in zip(wanted, ASKED, rows, strict=True):
        alone = Step(logits[[row]], *top_of(logits[[row]], 6))
        assert change_step([(search_of(**options), [0])], alone) == [own]
        assert [each[row].tolist() for each in together[:3]] == [each[0].tolist() for each in alone[:3]]
        assert len(own) == ("given_targets" in options or "return_alternatives" in options)
        assert own or [each[row].tolist() for each in together[:3]] != [each[row] for each in plain]
    for row in (4, 6):
        assert [each[row].tolist() for each in together[:3]] == [each[row] for each in plain]


def test_all_hypotheses_draw_from_the_first_row_and_then_each_from_its_own() -> None:
    search = search_of(beam_size=3, num_hypotheses=3, sampling=Sampling(seed=2, temperature=2.0))
    logits = np.zeros((1, VOCABULARY), np.float32)
    assert search.top_k == 3
    top_ids, top_log_probs = top_of(logits, 3)

    change_step([(search, [0])], Step(logits, top_ids, top_log_probs))

    assert len({*top_ids[0].tolist()}) == 3
    assert top_log_probs[0] == pytest.approx([-np.log(VOCABULARY)] * 3, abs=1e-5)
    assert search.advance(top_ids.tolist(), top_log_probs.tolist()) == [0, 0, 0]
    assert (search.last_ids, search.top_k) == (top_ids[0].tolist(), 1)
    logits = np.full((3, VOCABULARY), -50, np.float32)
    logits[range(3), [10, 20, 30]] = 0.0
    top_ids, top_log_probs = top_of(logits, 1)
    change_step([(search, [2, 0, 1])], Step(logits, top_ids, top_log_probs))
    assert top_ids[[2, 0, 1], 0].tolist() == [30, 10, 20]
