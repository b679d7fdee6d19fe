"""Judging tags: the marked spans, what is counted, and a faultless and a faulty translation."""

import random

import numpy as np
import pytest

from server.text.alignment import WordWeights
from server.text.markup.document import Mark
from tests.acceptance.aligned import Aligned
from tests.acceptance.tag_placement import (
    MarkedSpan,
    check_documents,
    check_spans,
    f1,
    linked_words,
    placed_words,
    read_spans,
    words_within,
)
from tests.server.text.markup.random_marks import faults, random_marks

SPAN = MarkedSpan("the red house", (4, 13), "das rote Haus da", (4, 13))
WORDS = WordWeights([(0, 3), (4, 7), (8, 13)], [(0, 3), (4, 8), (9, 13), (14, 16)], np.eye(4, 3, dtype=np.float32))


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("de", "en")])
def test_a_hundred_spans_of_each_direction_are_marked(source: str, target: str) -> None:
    spans = read_spans(source, target)

    assert len({span.source for span in spans}) == 100
    for span in spans:
        assert words_within(span.source, *span.source_span)
        assert words_within(span.target, *span.target_span)
        assert not set("[]").intersection(span.source + span.target)


def test_words_count_that_a_range_touches() -> None:
    assert words_within("das rote, Haus", 4, 9) == {1}
    assert words_within("das rote, Haus", 5, 11) == {1, 2}
    assert words_within("das rote, Haus", 3, 4) == frozenset()


def test_f1_is_over_the_words_of_all_items() -> None:
    one, other, none = frozenset({1, 2, 3}), frozenset({3}), frozenset[int]()

    assert f1([one, other], [one, other]) == 1.0
    assert f1([one, none], [one, other]) == pytest.approx(6 / 7)
    assert f1([none], [one]) == 0.0


def test_words_are_placed_and_linked() -> None:
    assert placed_words(SPAN, WORDS) == linked_words(SPAN, WORDS) == {1, 2}
    torn = WordWeights(WORDS.sources, WORDS.targets, np.eye(3, dtype=np.float32)[[1, 0, 2, 0]])
    assert linked_words(SPAN, torn) == {0, 2}


def test_spans_whose_translation_has_changed_are_not_judged() -> None:
    same = [Aligned(SPAN.source, SPAN.target, WORDS)]
    other = [Aligned(SPAN.source, "ein rotes Haus", WORDS)]

    checks, shown = check_spans([SPAN, SPAN], [same, other])

    assert [check.passed for check in checks[:2]] == [False, True]
    assert checks[0].measured == "50.0%"
    assert shown == []


def test_documents_of_one_sentence_come_back() -> None:
    checks = check_documents([Aligned(SPAN.source, SPAN.target, WORDS)])

    assert [check.passed for check in checks] == [None, True, True, True]


def test_faults_are_seen() -> None:
    marks = [Mark(0, 7, "<0>", "</0>"), Mark(4, 6, "<1>", "</1>"), Mark(8, 8, "<2/>", "")]

    assert faults(marks, "a & b", "<0><1>a</1> &amp;</0> <2/>b") == []
    assert faults(marks, "a & b", "<0><1>a</1> &amp;</0> <2/>c") == ["text"]
    assert faults(marks, "a & b", "<0><1>a</1> &amp;</0> b") == ["tags"]
    assert faults(marks, "a & b", "<0><1>a</0> &amp;</1> <2/>b") == ["nesting"]
    assert faults(marks, "a & b", "<0>a</0> <1>&amp;</1> <2/>b") == ["nesting"]


def test_random_marks_are_in_order_and_nested() -> None:
    rng = random.Random(1)
    for _ in range(300):
        marks = random_marks(rng, 12)
        assert [mark.begin for mark in marks] == sorted(mark.begin for mark in marks)
        for index, inner in enumerate(marks):
            for outer in marks[:index]:
                assert inner.end <= outer.end or outer.end <= inner.begin, (outer, inner)
