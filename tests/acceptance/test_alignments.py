"""Judging links by hand: the aligned sentences, what is counted, and a right and a wrong answer of a server."""

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import pytest

from babelserve.v1.translation_pb2 import Link, Sentence, TranslateRequest, TranslateResponse, Translation
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.acceptance import alignments
from tests.acceptance.alignments import ByHand, agreement, judge_by_hand, read_by_hand
from tests.acceptance.lines import Asker

HOUSE = ByHand("Red house.", "Rotes Haus.", {(0, 0), (1, 1), (2, 2)}, {(0, 0), (1, 1), (2, 2)})
THERE = ByHand("There is.", "Es gibt.", {(2, 2)}, {(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)})


@dataclasses.dataclass(frozen=True)
class Stub:
    """Answers each text with its prefix and an end, or with another text, and links words with the same place."""

    end: str = ""
    answer: str = ""

    def Translate(self, request: TranslateRequest, **_: Any) -> TranslateResponse:
        texts = [self.answer or prefix + self.end for prefix in request.target_prefixes]
        return TranslateResponse(
            translations=[
                Translation(text=text, sentences=[self._align(source, text)])
                for source, text in zip(request.contents, texts, strict=True)
            ]
        )

    def _align(self, source: str, target: str) -> Sentence:
        spans: Sequence[list[tuple[int, int]]] = [
            [match.span() for match in alignments._WORD.finditer(text)] for text in (source, target)
        ]
        links = [
            Link(source_begin=one[0], source_end=one[1], target_begin=other[0], target_end=other[1])
            for one, other in zip(*spans, strict=False)
        ]
        return Sentence(source_text=source, text=target, links=links)


def asker(source: str, target: str, end: str = "") -> Asker:
    return Asker(cast("TranslationServiceStub", Stub(end)), source, target)


def test_a_hundred_sentences_are_aligned_and_each_link_is_of_words_that_are_there() -> None:
    english, german = read_by_hand("en", "de"), read_by_hand("de", "en")

    assert (len(english), len(german)) == (60, 40)
    assert len({each.source for each in english + german}) == 100
    for each in english + german:
        lengths = [len(alignments._WORD.findall(text)) for text in (each.source, each.target)]
        assert each.sure
        assert all(0 <= i < lengths[0] and 0 <= j < lengths[1] for i, j in each.possible)


def test_other_directions_are_refused() -> None:
    with pytest.raises(ValueError, match='no sentences from "en" to "fr" were aligned by hand'):
        read_by_hand("en", "fr")


def test_the_sure_links_alone_and_all_possible_ones_are_without_error() -> None:
    assert agreement([HOUSE, THERE], [HOUSE.sure, THERE.sure]) == (1.0, 1.0, 0.0)
    assert agreement([HOUSE, THERE], [HOUSE.sure, THERE.possible]) == (1.0, 1.0, 0.0)


def test_wrong_links_cost_precision_and_missing_sure_ones_recall() -> None:
    # of 5 links 4 are possible, 3 of them sure; of 4 sure ones 3 are found
    measured = agreement([HOUSE, THERE], [{(0, 0), (1, 1), (2, 1)}, {(0, 1), (2, 2)}])

    assert measured == pytest.approx((4 / 5, 3 / 4, 1 - (3 + 4) / (5 + 4)))


def test_no_links_at_all_are_all_wrong() -> None:
    assert agreement([HOUSE], [set()]) == (0.0, 0.0, 1.0)


def test_a_server_is_judged_in_each_direction_and_over_both(monkeypatch: pytest.MonkeyPatch) -> None:
    crossed = HOUSE._replace(sure={(0, 1), (1, 0), (2, 2)}, possible={(0, 1), (1, 0), (2, 2)})
    monkeypatch.setattr(alignments, "read_by_hand", lambda source, _: [HOUSE, crossed] if source == "en" else [THERE])

    checks, rows = judge_by_hand([asker("en", "de"), asker("de", "en")])

    assert [check.name for check in checks] == [
        "en-de, 2 sentences",
        "de-en, 1 sentences",
        "error rate against the links made by hand",
    ]
    assert checks[0].measured == "0.333 (precision 0.667, recall 0.667)"
    assert checks[1].measured == "0.000 (precision 1.000, recall 1.000)"
    assert checks[2].measured == "0.250 (precision 0.778, recall 0.714)"
    assert [check.passed for check in checks] == [None, None, False]
    assert rows == [["Red house.", "Rotes Haus.", "Red = Rotes, house = Haus", "Red = Haus, house = Rotes"]]


def test_what_a_server_adds_to_the_translation_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    longer = HOUSE._replace(source="Red house. !")
    monkeypatch.setattr(alignments, "read_by_hand", lambda *_: [longer])

    checks, rows = judge_by_hand([asker("en", "de", " Da")])

    assert checks[-1].measured == "0.000 (precision 1.000, recall 1.000)"
    assert not rows


def test_a_server_that_gives_another_translation_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignments, "read_by_hand", lambda *_: [HOUSE])

    with pytest.raises(ValueError, match=r"'Red house.' must be translated as 'Rotes Haus.', not as 'Ja'"):
        judge_by_hand([Asker(cast("TranslationServiceStub", Stub(answer="Ja")), "en", "de")])
