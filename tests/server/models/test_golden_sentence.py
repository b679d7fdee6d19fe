import dataclasses

import pytest

from server.bundle.manifest import Manifest
from server.decoding.result import FinishReason, Hypothesis
from server.models.golden_sentence import GoldenSentence, compare_with_golden
from server.network import StepKind


def found(manifest: Manifest, score: float = -1.0) -> Hypothesis:
    ids = manifest.golden.outputs["cpu-fp32"].ids
    return Hypothesis(ids=ids, score=score, finish_reason=FinishReason.STOP)


def test_other_ids_in_fp32_are_a_fault(manifest: Manifest) -> None:
    other = dataclasses.replace(found(manifest), ids=(9, 9))

    (fault,) = compare_with_golden(manifest, "cpu-fp32", other)

    assert "(9, 9)" in fault


@pytest.mark.parametrize(
    ("score", "num_faults"),
    [(-1.09, 0), (-1.11, 1), (-0.95, 0), (-0.85, 1), (float("nan"), 1)],
)
def test_int8_is_compared_by_its_score(manifest: Manifest, score: float, num_faults: int) -> None:
    other = dataclasses.replace(found(manifest, score), ids=(9, 9))

    assert len(compare_with_golden(manifest, "cpu-int8", other)) == num_faults


def test_a_lane_is_given_the_golden_sentence_as_at_export(manifest: Manifest) -> None:
    sentence = GoldenSentence(manifest, "cpu-fp32")

    assert sentence.source_ids == manifest.golden.source_ids
    for kind in StepKind:
        options = sentence.options(kind)
        assert (options.beam_size, options.use_shortlist) == (4, kind is StepKind.SHORTLIST)
        assert options.forced_prefix == ()


def test_the_golden_sentence_begins_as_its_language_does(manifest: Manifest) -> None:
    pair = dataclasses.replace(manifest.language_pairs[0], target_prefix=(7,))
    sentence = GoldenSentence(dataclasses.replace(manifest, language_pairs=(pair,)), "cpu-fp32")

    assert [sentence.options(kind).forced_prefix for kind in StepKind] == [(7,), (7,)]


def test_by_plain_steps_it_gives_what_it_gave_at_export(manifest: Manifest) -> None:
    sentence = GoldenSentence(manifest, "cpu-fp32")
    other = dataclasses.replace(found(manifest), ids=(9, 9))

    assert sentence.faults(StepKind.PLAIN, found(manifest)) == []
    assert len(sentence.faults(StepKind.PLAIN, other)) == 1


@pytest.mark.parametrize(("score", "num_faults"), [(-0.59, 0), (-0.61, 1), (float("nan"), 1)])
def test_by_shortlist_it_scores_what_it_scored_at_first(manifest: Manifest, score: float, num_faults: int) -> None:
    sentence = GoldenSentence(manifest, "cpu-fp32")

    assert len(sentence.faults(StepKind.SHORTLIST, found(manifest, float("nan")))) == 1
    assert sentence.faults(StepKind.SHORTLIST, found(manifest, -0.5)) == []
    assert len(sentence.faults(StepKind.SHORTLIST, found(manifest, score))) == num_faults


@pytest.mark.parametrize(("difference", "num_faults"), [(0.09, 0), (0.11, 1)])
def test_a_score_that_is_a_sum_has_a_margin_for_each_token(
    manifest: Manifest, difference: float, num_faults: int
) -> None:
    one_pass = dataclasses.replace(manifest, family="one_pass")
    num_tokens = len(manifest.golden.outputs["cpu-int8"].ids)
    other = dataclasses.replace(found(manifest, -1.0 - difference * num_tokens), ids=(9, 9))

    assert len(compare_with_golden(one_pass, "cpu-int8", other)) == num_faults
