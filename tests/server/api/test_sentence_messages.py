"""Sentences of answers with all that may be asked of them, without a server."""

from dataclasses import replace

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.api.sentence_messages import sentence_message, sentence_messages, token_messages
from server.decoding.result import FinishReason, SearchNode
from server.text.source import SourceSentence, SplitText
from server.translation.answer import Candidate, TextAnswer, Token, TranslatedSentence

FIRST = SourceSentence("A dog 😀 runs.", "  ", (5, 3))
SECOND = SourceSentence("***", "\n", None)
THIRD = SourceSentence("Hi.", "", (6, 3))
ALL = pb.OutputOptions(include_tokens=True, include_confidence=True)


def sure(source: SourceSentence, text: str, confidence: float, num_tokens: int) -> TranslatedSentence:
    candidates = (Candidate(text, -1.0, num_tokens, FinishReason.STOP),)
    pieces = "\u2581Ein", "\u2581Hund", "\u2581", "\ue000", "."
    log_probs = -0.5, -0.25, -0.75, -1.0, -0.125, -0.0625
    return TranslatedSentence(source, candidates, pieces=pieces, log_probs=log_probs, confidence=confidence)


@pytest.fixture
def answer() -> TextAnswer:
    answer = TextAnswer(SplitText(" \n", (FIRST, SECOND, THIRD)))
    answer.sentences[0] = sure(FIRST, "Ein Hund 😀.", 0.75, 3)
    answer.sentences[1] = TranslatedSentence.copied(SECOND)
    answer.sentences[2] = sure(THIRD, "Ein Hund.", 0.25, 1)
    return answer


def test_ranges_are_those_of_the_texts(answer: TextAnswer) -> None:
    source = " \nA dog 😀 runs.  ***\nHi."
    messages = sentence_messages(answer, pb.OutputOptions(include_sentences=True))

    assert [source[each.source_begin : each.source_end] for each in messages] == ["A dog 😀 runs.", "***", "Hi."]
    assert [answer.text(0)[each.begin : each.end] for each in messages] == ["Ein Hund 😀.", "***", "Ein Hund."]
    assert not messages[0].tokens
    assert not messages[0].HasField("confidence")
    assert sentence_messages(answer, pb.OutputOptions(include_confidence=True)) == []


def test_tokens_have_ranges_of_the_translation(answer: TextAnswer) -> None:
    first, copied, _ = sentence_messages(answer, ALL)

    shown = [(token.text, first.text[token.begin : token.end], token.log_prob) for token in first.tokens]
    assert shown == [
        ("\u2581Ein", "Ein", -0.5),
        ("\u2581Hund", "Hund", -0.25),
        ("\u2581", "", -0.75),
        ("", "😀", -1.0),
        (".", ".", -0.125),
        ("", "", -0.0625),
    ]
    assert (list(copied.tokens), copied.HasField("confidence")) == ([], False)
    assert first.confidence == 0.75


def test_a_texts_confidence_is_weighted_by_tokens(answer: TextAnswer) -> None:
    assert answer.confidence == pytest.approx((3 * 0.75 + 0.25) / 4)
    assert TextAnswer(SplitText("", ())).confidence is None


def test_a_sentence_of_a_stream_has_no_range_of_a_translation(answer: TextAnswer) -> None:
    message = sentence_message(answer.sentences[2], answer.sentences[2].text(0), answer.source_begin(2), None, ALL)

    assert (message.source_begin, message.source_end, message.begin, message.end) == (21, 24, 0, 0)


def test_a_search_is_a_tree_of_its_nodes(answer: TextAnswer) -> None:
    nodes = SearchNode(None, 7, -0.5, is_chosen=True), SearchNode(0, 3, -1.0, -0.5, FinishReason.STOP)
    answer.sentences[0] = replace(answer.sentences[0], tree=tuple(zip(["\u2581Ein", ""], nodes, strict=True)))

    first, second, _ = sentence_messages(answer, pb.OutputOptions(include_search=True))

    assert list(first.search) == [
        pb.SearchNode(text="\u2581Ein", log_prob=-0.5, is_chosen=True),
        pb.SearchNode(parent=0, log_prob=-1.0, score=-0.5, finish_reason=pb.FINISH_REASON_STOP),
    ]
    assert (first.search[0].HasField("parent"), first.search[0].HasField("score")) == (False, False)
    assert not second.search


def test_a_token_that_writes_nothing_has_no_range() -> None:
    (message,) = token_messages([Token("", None, -float("inf"))])

    assert (message.begin, message.end, message.log_prob) == (0, 0, -float("inf"))
