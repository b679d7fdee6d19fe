"""What is done with the attention of finished sentences."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from server.decoding.options import DecodingOptions
from server.engine.aligning import Group, align, coverage, needs_attention
from server.engine.sentence import Sentence
from server.network import Decoder
from tests.fakes import EOS
from tests.server.engine.parts import BOS, sentence_of

SOURCE = (7, 8, 9, EOS)


def attention_of(ids: Sequence[int]) -> NDArray[np.float32]:
    """What a target attends to, [T - 1, S]; it depends on its tokens alone."""
    rows = [
        np.random.default_rng([*ids[: number + 1]]).dirichlet(np.full(len(SOURCE), 0.2)) for number in range(len(ids))
    ]
    return np.array(rows[1:], np.float32)


class Attending:
    """The decoder of a batch whose steps are taken. It keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[list[int]]] = []

    def keep(self, row: int, source_length: int) -> str:
        return f"row {row}, {source_length} tokens"

    def align(
        self, sources: Sequence[str], target_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        assert list(sources) == ["row 4, 4 tokens"] * len(sources)
        assert source_lengths.tolist() == [len(SOURCE)] * len(sources)
        self.asked.append(target_ids.tolist())
        return np.stack([attention_of(ids) for ids in target_ids.tolist()])


def finished(**options: Any) -> Sentence:
    """A sentence with three finished hypotheses, of which two ended in the same step."""
    sentence = sentence_of(SOURCE, DecodingOptions(beam_size=2, num_hypotheses=2, length_penalty=0.0, **options))
    sentence.rows = [4, 5]
    search = sentence.search
    assert search.advance([[20, EOS, 21, 22]], [[-0.5, -1.0, -2.0, -9.0]])
    assert not search.advance([[EOS, 23, 24, 25]] * 2, [[-0.2, -7.0, -8.0, -9.0], [-0.1, -7.0, -8.0, -9.0]])
    return sentence


def aligned(sentence: Sentence) -> Attending:
    decoder = Attending()
    align(group_of([sentence], decoder).due([], may_wait=True), cast("Decoder", decoder))
    return decoder


def group_of(sentences: Sequence[Sentence], decoder: Attending) -> Group:
    group = Group()
    group.add(sentences, cast("Decoder", decoder))
    return group


@pytest.mark.parametrize(
    ("options", "needs"), [({}, False), ({"with_alignment": True}, True), ({"coverage_penalty": 0.1}, True)]
)
def test_few_sentences_need_it(options: dict[str, Any], needs: bool) -> None:
    assert needs_attention(sentence_of(SOURCE, DecodingOptions(**options))) is needs


def test_coverage_is_added_to_the_scores_of_all_hypotheses_with_the_attention_of_eos() -> None:
    usual = finished().search.best()
    sentence = finished(coverage_penalty=2.0)
    before = list(sentence.search.finished)

    aligned(sentence)

    expected = {each.ids: each.score + 2.0 * coverage(attention_of([BOS, *each.ids, EOS])) for each in before}
    assert len(before) == 3, "more than a search keeps otherwise"
    assert {each.ids: each.score for each in sentence.search.finished} == pytest.approx(expected, abs=1e-5)
    assert [each.ids for each in sentence.search.best()] == sorted(expected, key=lambda ids: -expected[ids])[:2]
    assert [each.ids for each in sentence.search.best()] != [each.ids for each in usual], "else nothing is shown"


def test_the_best_by_coverage_is_what_is_aligned() -> None:
    sentence = finished(coverage_penalty=2.0, with_alignment=True)

    decoder = aligned(sentence)

    best = [BOS, *sentence.search.best()[0].ids]
    assert [len(each) for each in decoder.asked] == [3], "all hypotheses in one run"
    assert sentence.attention is not None
    assert sentence.attention.tolist() == attention_of(best).tolist()


def test_many_hypotheses_are_taken_a_few_at_a_time() -> None:
    sentences = [finished(coverage_penalty=0.1) for _ in range(7)]
    decoder = Attending()

    align(group_of(sentences, decoder).sentences, cast("Decoder", decoder))

    assert [len(each) for each in decoder.asked] == [16, 5]


def asking(**options: Any) -> Sentence:
    return sentence_of(SOURCE, DecodingOptions(with_alignment=True, **options))


def test_sentences_wait_while_another_one_that_runs_needs_attention() -> None:
    first, second = finished(with_alignment=True), finished(with_alignment=True)
    group = group_of([first], Attending())

    assert group.due([asking()], may_wait=True) == []
    group.add([second], cast("Decoder", Attending()))
    assert group.due([sentence_of(SOURCE, DecodingOptions())], may_wait=True) == [first, second]
    assert group.sentences == [first, second], "until they are taken out"


def test_eight_sentences_wait_no_longer() -> None:
    group = group_of([finished(with_alignment=True) for _ in range(7)], Attending())
    assert group.due([asking()], may_wait=True) == []

    group.add([finished(with_alignment=True)], cast("Decoder", Attending()))

    assert len(group.due([asking()], may_wait=True)) == 8


def test_no_sentence_waits_for_more_than_eight_steps() -> None:
    group = group_of([finished(with_alignment=True)], Attending())

    assert [len(group.due([asking()], may_wait=True)) for _ in range(9)] == [0] * 7 + [1, 0], (
        "then they are counted again"
    )


def test_none_waits_whose_source_leaves_with_its_rows() -> None:
    group = group_of([finished(with_alignment=True)], Attending())

    assert len(group.due([asking()], may_wait=False)) == 1


def test_a_sentence_that_is_taken_out_is_not_aligned() -> None:
    first, second = finished(with_alignment=True), finished(with_alignment=True)
    group = group_of([first, second], Attending())

    group.remove([first])

    assert group.due([], may_wait=True) == [second]


def restated(attention: list[list[float]]) -> float:
    """CTranslate2's `compute_coverage_penalty`, word for word."""
    penalty = 0.0
    for column in range(len(attention[0])):
        covered = sum(row[column] for row in attention)
        if covered > 0:
            penalty += math.log(min(covered, 1.0))
    return penalty


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (20, 5)])
def test_coverage_is_the_sum_of_what_is_attended_to_too_little(shape: tuple[int, int]) -> None:
    attention = np.random.default_rng(1).dirichlet(np.full(shape[1], 0.3), shape[0]).astype(np.float32)

    assert coverage(attention) == pytest.approx(restated(attention.tolist()), abs=1e-5)


def test_what_is_never_attended_to_is_left_out_and_what_is_often_attended_to_is_no_gain() -> None:
    assert coverage(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], np.float32)) == pytest.approx(math.log(0.5))
