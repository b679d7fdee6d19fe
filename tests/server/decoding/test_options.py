import dataclasses
from typing import Any

import numpy as np
import pytest

from server.decoding.options import DecodingOptions, Sampling, default_max_tokens
from server.decoding.terms import Replaced, Terms


def test_defaults_are_those_that_the_contract_names() -> None:
    """See the comments of `DecodingOptions` in protos/babelserve/v1/translation.proto."""
    options = DecodingOptions()

    assert (options.beam_size, options.num_hypotheses, options.length_penalty) == (4, 1, 1.0)
    assert options.max_output_tokens is None
    assert options.with_scores
    assert not options.use_shortlist


@pytest.mark.parametrize(
    ("beam_size", "with_scores", "needs_log_probs"),
    [(1, True, True), (1, False, False), (2, True, True), (2, False, True)],
)
def test_only_greedy_search_without_scores_can_do_with_logits(
    beam_size: int, with_scores: bool, needs_log_probs: bool
) -> None:
    assert DecodingOptions(beam_size=beam_size, with_scores=with_scores).needs_log_probs is needs_log_probs


def test_equal_options_are_one_key_and_any_difference_makes_another() -> None:
    """The cache of translations looks them up by it."""
    others = [
        DecodingOptions(beam_size=5),
        DecodingOptions(exact_tokens=5),
        DecodingOptions(ratio=0.5),
        DecodingOptions(num_hypotheses=2),
        DecodingOptions(length_penalty=0.5),
        DecodingOptions(max_output_tokens=9),
        DecodingOptions(with_scores=False),
        DecodingOptions(with_alignment=True),
        DecodingOptions(use_shortlist=True),
        DecodingOptions(with_tokens=True),
        DecodingOptions(with_search=True),
        DecodingOptions(forced_prefix=(5,)),
        DecodingOptions(given_targets=((5, 3),)),
        DecodingOptions(terms=Terms((((5,),),), Replaced(((),), ()))),
        DecodingOptions(patience=2.0),
        DecodingOptions(repetition_penalty=1.2),
        DecodingOptions(no_repeat_ngram_size=3),
        DecodingOptions(min_output_tokens=2),
        DecodingOptions(suppressed=((5,),)),
        DecodingOptions(sampling=Sampling()),
        DecodingOptions(end_loops=True),
        DecodingOptions(target_prefix=(5,)),
        DecodingOptions(return_alternatives=True),
        DecodingOptions(min_alternative_expansion_prob=0.1),
        DecodingOptions(prefix_bias_beta=0.5),
        DecodingOptions(min_length_ratio=0.5),
        DecodingOptions(max_length_ratio=2.0),
        DecodingOptions(coverage_penalty=0.2),
    ]

    assert len({DecodingOptions(), DecodingOptions()}) == 1
    assert len({DecodingOptions(), *others}) == 1 + len(dataclasses.fields(DecodingOptions))


@pytest.mark.parametrize(
    ("options", "is_steered"),
    [
        (DecodingOptions(patience=2.0, end_loops=True), False),
        (DecodingOptions(repetition_penalty=1.2), True),
        (DecodingOptions(no_repeat_ngram_size=3), True),
        (DecodingOptions(min_output_tokens=2), True),
        (DecodingOptions(suppressed=((5,),)), True),
        (DecodingOptions(sampling=Sampling()), True),
        (DecodingOptions(target_prefix=(5,)), False),
        (DecodingOptions(target_prefix=(5,), prefix_bias_beta=0.5), True),
        (DecodingOptions(prefix_bias_beta=0.5), False),  # of a sentence without a prefix
    ],
)
def test_options_that_change_logits_need_whole_rows(options: DecodingOptions, is_steered: bool) -> None:
    assert options.is_steered is is_steered
    is_drawn = options.sampling is not None or options.prefix_bias_beta > 0
    assert options.uses_log_probs is (is_steered and is_drawn)


@pytest.mark.parametrize(("source_tokens", "limit", "expected"), [(1, 512, 18), (100, 512, 216), (300, 512, 512)])
def test_default_limit_grows_with_the_source(source_tokens: int, limit: int, expected: int) -> None:
    assert default_max_tokens(source_tokens, limit) == expected


@pytest.mark.parametrize(
    ("options", "num_given", "expected"),
    [
        ({}, 0, 26),
        ({}, 4, 30),
        ({"max_output_tokens": 7}, 0, 7),
        ({"max_output_tokens": 7}, 6, 9),  # the prefix and what a search needs behind it
        ({"max_output_tokens": 1, "return_alternatives": True}, 0, 3),
        ({"min_output_tokens": 80}, 0, 81),
        ({"min_length_ratio": 9.0}, 0, 45),
        ({"max_output_tokens": 1000}, 0, 200),
        ({"given_targets": ((5,),)}, 0, 200),
    ],
)
def test_a_translation_has_at_most_so_many_tokens(options: dict[str, Any], num_given: int, expected: int) -> None:
    assert DecodingOptions(**options).of_source(5).most_tokens(5, num_given, 200) == expected


@pytest.mark.parametrize(
    ("asked", "source_tokens", "least", "most"),
    [
        ({}, 10, 0, None),
        ({"min_length_ratio": 0.5}, 10, 4, None),  # and the end of the translation
        ({"min_length_ratio": float(np.float32(0.7))}, 10, 6, None),
        ({"min_length_ratio": float(np.float32(1.2))}, 10, 11, None),
        ({"min_length_ratio": 0.5, "min_output_tokens": 7}, 10, 7, None),
        ({"max_length_ratio": float(np.float32(1.2))}, 10, 0, 12),
        ({"max_length_ratio": float(np.float32(0.7))}, 10, 0, 7),
        ({"max_length_ratio": 2.0, "max_output_tokens": 9}, 10, 0, 9),
        ({"max_length_ratio": 0.01}, 10, 0, 2),
    ],
)
def test_ratios_are_bounds_for_a_source(
    asked: dict[str, Any], source_tokens: int, least: int, most: int | None
) -> None:
    options = DecodingOptions(**asked).of_source(source_tokens)

    assert (options.min_output_tokens, options.max_output_tokens) == (least, most)


@pytest.mark.parametrize(("alternatives", "rows"), [(False, 4), (True, 12)])
def test_each_alternative_has_a_beam_of_its_own(alternatives: bool, rows: int) -> None:
    assert DecodingOptions(num_hypotheses=3, return_alternatives=alternatives).num_rows == rows


def test_a_length_is_a_number_or_a_ratio() -> None:
    assert DecodingOptions().length(20) is None
    assert DecodingOptions(exact_tokens=7).length(20) == 7
    assert [DecodingOptions(ratio=0.8).length(number) for number in (0, 1, 5, 6)] == [1, 1, 4, 5]
