from server.engine.sequence import FinishReason
from server.errors import EngineFailed, InvalidRequest
from server.text.sentences import SourceSentence, SplitText
from server.translation.answer import TextAnswer, count_source_tokens
from server.translation.job import Candidate, Completion, TranslatedSentence

ONE = SourceSentence("one", " ", (5, 6, 3))
TWO = SourceSentence("two", "\n", (7, 3))
STARS = SourceSentence("***", "", None)


def translated(source: SourceSentence, *candidates: Candidate) -> TranslatedSentence:
    return TranslatedSentence(source=source, candidates=candidates)


def answer() -> TextAnswer:
    """Of three sentences that finished in another order; the second has but one candidate."""
    text = TextAnswer.of(SplitText("\t", (ONE, TWO, STARS)))
    text.add(Completion(0, 2, translated(STARS, Candidate("***", 0.0, 0, FinishReason.STOP))))
    text.add(Completion(0, 1, translated(TWO, Candidate("zwei", -2.0, 1, FinishReason.LENGTH))))
    eins, ein = Candidate("eins", -1.0, 3, FinishReason.STOP), Candidate("ein", -3.0, 1, FinishReason.STOP)
    text.add(Completion(0, 0, translated(ONE, eins, ein)))
    return text


def test_a_text_joins_its_sentences_in_reading_order() -> None:
    assert answer().text(0) == "\teins zwei\n***"


def test_a_sentence_with_fewer_candidates_gives_its_last() -> None:
    assert answer().text(1) == "\tein zwei\n***"


def test_scores_are_weighted_by_tokens() -> None:
    assert answer().score(0) == (-1.0 * 3 - 2.0 * 1) / 4
    assert TextAnswer.of(SplitText(" ", ())).score(0) == 0.0


def test_an_empty_translation_keeps_its_score() -> None:
    text = TextAnswer.of(SplitText("", (ONE,)))
    text.add(Completion(0, 0, translated(ONE, Candidate("", -8.0, 0, FinishReason.STOP))))

    assert text.score(0) == -8.0


def test_one_limited_sentence_marks_the_text() -> None:
    assert answer().finish_reason == FinishReason.LENGTH
    assert TextAnswer.of(SplitText(" ", ())).finish_reason == FinishReason.STOP


def test_tokens_are_counted_without_eos() -> None:
    assert (answer().num_source_tokens, answer().num_target_tokens) == (3, 4)
    assert count_source_tokens([ONE, STARS]) == 2


def test_the_first_error_stays() -> None:
    text, first = answer(), EngineFailed("first")
    text.add(Completion(0, 0, first))
    text.add(Completion(0, 1, EngineFailed("second")))

    assert text.error is first
    assert TextAnswer.of(InvalidRequest("contents[0]", "is too long")).split is None
