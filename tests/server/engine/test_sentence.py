from dataclasses import replace
from typing import Any

import pytest

from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import Timings
from server.engine.flow import ANYONE
from server.engine.limits import Footprint
from server.network import StepKind
from tests.fakes import EOS
from tests.server.engine.parts import new_sentence


def test_its_footprint_is_that_of_the_beam_it_will_have() -> None:
    sentence = new_sentence(tokens=6, beam_size=4)

    assert sentence.rows == []
    assert sentence.footprint == Footprint.of(4, 6)


@pytest.mark.parametrize(("use_shortlist", "kind"), [(False, StepKind.PLAIN), (True, StepKind.SHORTLIST)])
def test_its_options_say_which_steps_it_takes(use_shortlist: bool, kind: StepKind) -> None:
    assert new_sentence(use_shortlist=use_shortlist).kind is kind


@pytest.mark.parametrize(("now", "is_over"), [(1.9, False), (2.0, True), (9.0, True)])
def test_it_is_over_from_its_deadline_on(now: float, is_over: bool) -> None:
    assert new_sentence(deadline=2.0).is_over(now) is is_over


def test_without_a_deadline_it_is_over_when_its_caller_leaves() -> None:
    sentence = new_sentence()
    assert not sentence.is_over(1e9)

    sentence.future.cancel()

    assert sentence.is_over(0.0)


def test_its_answer_has_the_best_hypotheses_and_says_where_the_time_went() -> None:
    sentence = new_sentence(beam_size=2)
    sentence.admitted, sentence.encoded = 1.0, 3.5
    sentence.search.advance([[EOS, 9, 8, 7]], [[-0.5, -0.6, -2.0, -3.0]])
    sentence.search.advance([[EOS, 5, 6, 7]] * 2, [[-0.1, -2.0, -3.0, -4.0]] * 2)

    result = sentence.result(now=10.0)

    assert [hypothesis.ids for hypothesis in result.hypotheses] == [(9,)]  # of two, it asked for one
    assert result.timings == Timings(queue_seconds=1.0, encode_seconds=2.5, decode_seconds=6.5)
    assert not result.is_long


def test_its_answer_says_whether_its_request_was_long() -> None:
    sentence = new_sentence()
    sentence.flow = ANYONE.of_long()

    assert sentence.result(now=10.0).is_long


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"min_output_tokens": 6}, True),
        ({"min_output_tokens": 7}, False),
        ({"sampling": Sampling()}, False),
        ({"target_prefix": (9,)}, False),
        ({"given_targets": ((9, EOS),)}, False),
    ],
)
def test_its_length_says_something_of_others_if_the_network_has_chosen_it(
    options: dict[str, Any], expected: bool
) -> None:
    sentence = new_sentence(tokens=6)
    sentence.options = DecodingOptions(beam_size=1, **options)
    sentence.search.num_tokens = sentence.search.max_tokens - 1

    assert sentence.has_own_length is expected
    sentence.search.num_tokens += 1
    assert sentence.has_own_length is expected
    sentence.options = replace(sentence.options, max_output_tokens=9)
    assert not sentence.has_own_length


def test_sentences_of_the_same_words_are_not_the_same() -> None:
    one, other = new_sentence(), new_sentence()

    assert one != other
    assert len({one, other}) == 2
