import dataclasses

import pytest

from server.decoding.options import DecodingOptions, Sampling
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
        DecodingOptions(num_hypotheses=2),
        DecodingOptions(length_penalty=0.5),
        DecodingOptions(max_output_tokens=9),
        DecodingOptions(with_scores=False),
        DecodingOptions(with_alignment=True),
        DecodingOptions(use_shortlist=True),
        DecodingOptions(with_tokens=True),
        DecodingOptions(with_search=True),
        DecodingOptions(forced_prefix=(5,)),
        DecodingOptions(given_target=(5, 3)),
        DecodingOptions(terms=Terms((((5,),),), Replaced(((),), 4))),
        DecodingOptions(patience=2.0),
        DecodingOptions(repetition_penalty=1.2),
        DecodingOptions(no_repeat_ngram_size=3),
        DecodingOptions(min_output_tokens=2),
        DecodingOptions(suppressed=((5,),)),
        DecodingOptions(sampling=Sampling()),
        DecodingOptions(end_loops=True),
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
    ],
)
def test_options_that_change_logits_need_whole_rows(options: DecodingOptions, is_steered: bool) -> None:
    assert options.is_steered is is_steered
