import html

import pytest

from server.bundle.tokenizer import Tokenizer
from server.decoding.result import FinishReason, Hypothesis, Result, Timings
from server.errors import InvalidRequest
from server.text.glossary import FoundTerm
from server.text.markup.document import Mark
from server.text.markup.sentence_markup import SentenceMarkup, TagText
from server.text.masking import Masker
from server.text.source import SourceSentence, SplitText
from server.text.term_table import Term
from server.translation.answer import Candidate, TextAnswer, TranslatedSentence
from server.translation.restoring import restore

ONE = SourceSentence("one.", " ", (5, 6, 3))
TWO = SourceSentence("two", "\n", (7, 3))
STARS = SourceSentence("***", "", None)


def translated(source: SourceSentence, *candidates: Candidate) -> TranslatedSentence:
    return TranslatedSentence(source, candidates)


def answer() -> TextAnswer:
    """Of three sentences that finished in another order; the second has but one candidate."""
    text = TextAnswer(SplitText("\t", (ONE, TWO, STARS)))
    text.sentences[2] = TranslatedSentence.copied(STARS)
    text.sentences[1] = translated(TWO, Candidate("zwei", -2.0, 1, FinishReason.LENGTH))
    eins, ein = Candidate("eins", -1.0, 3, FinishReason.STOP), Candidate("ein", -3.0, 1, FinishReason.STOP)
    text.sentences[0] = translated(ONE, eins, ein)
    return text


def test_a_text_joins_its_sentences_in_reading_order() -> None:
    assert answer().text(0) == "\teins zwei\n***"


def with_titles() -> TextAnswer:
    """Of two sentences, of which the second has a title of two sentences in a tag."""
    mark, title = "\U000f0000", TagText("One. Two.", " ", range(2))
    marks = (Mark(0, 3, f'<b title="{mark}">', "</b>"),)
    one, two = (SourceSentence(text, " ", (5, 3), markup=SentenceMarkup((), {}, html.escape)) for text in ("a", "b"))
    home = SourceSentence("two", "", (7, 3), markup=SentenceMarkup(marks, {}, html.escape, {mark: title}))
    return TextAnswer(SplitText("<p>", (one, home, one, two), homes=(1, 1)))


def test_a_sentence_is_told_when_the_texts_in_its_tags_are_translated() -> None:
    text = with_titles()

    assert [text.note(index) for index in (2, 0, 1, 3)] == [None, 0, None, 1]


def test_of_a_text_that_has_failed_any_sentence_is_told() -> None:
    text = with_titles()
    text.error = InvalidRequest("contents[0]", "is wrong")

    assert text.note(3) == 3


def test_texts_in_tags_stand_in_their_tags() -> None:
    text = with_titles()
    for index, word in enumerate(["eins", "zwei", "A & b.", "C."]):
        text.sentences[index] = translated(text.split.sentences[index], Candidate(word, -1.0, 1, FinishReason.STOP))

    assert text.text(0) == '<p>eins <b title=" A &amp; b. C. ">zwei</b>'


@pytest.mark.parametrize(
    ("translation", "separator", "following", "expected"),
    [
        ("un po'", "", "} other {", "un po\u2019} other {"),
        ("un po''", "", "} other {", "un po''} other {"),
        ("Tippe '{'x'}'", "", "} other {", "Tippe '{'x'}'} other {"),
        ("un po'", " ", "} other {", "un po' } other {"),
        ("un po'", "", "<br>", "un po'<br>"),
    ],
)
def test_an_apostrophe_at_the_end_of_a_branch_begins_no_quotation(
    translation: str, separator: str, following: str, expected: str
) -> None:
    branch, syntax = SourceSentence("a bit", separator, (5, 3)), SourceSentence(following, "", None)
    text = TextAnswer(SplitText("", (branch, syntax)))
    text.sentences[0] = translated(branch, Candidate(translation, 0.0, 1, FinishReason.STOP))
    text.sentences[1] = TranslatedSentence.copied(syntax)

    assert text.text(0) == expected


def test_a_sentence_with_fewer_candidates_gives_its_last() -> None:
    assert answer().text(1) == "\tein zwei\n***"


def test_scores_are_weighted_by_tokens() -> None:
    assert answer().score(0) == (-1.0 * 3 - 2.0 * 1) / 4
    assert TextAnswer(SplitText(" ", ())).score(0) == 0.0


def test_a_text_has_no_higher_score_at_a_lower_rank() -> None:
    """A short second candidate counts for as much as the first one of its sentence."""
    text = TextAnswer(SplitText("", (ONE, TWO)))
    text.sentences[0] = translated(ONE, *[Candidate("eins", -1.0, 2, FinishReason.STOP)] * 2)
    candidates = [Candidate("zwei drei", -2.0, 9, FinishReason.STOP), Candidate("zwei", -2.5, 1, FinishReason.STOP)]
    text.sentences[1] = translated(TWO, *candidates)

    assert text.score(0) > text.score(1)
    assert text.score(1) == (-1.0 * 2 - 2.5 * 9) / 11


def test_an_empty_translation_keeps_its_score() -> None:
    text = TextAnswer(SplitText("", (ONE,)))
    text.sentences[0] = translated(ONE, Candidate("", -8.0, 0, FinishReason.STOP))

    assert text.score(0) == -8.0


def test_one_limited_sentence_marks_the_text() -> None:
    assert answer().finish_reason == FinishReason.LENGTH
    assert TextAnswer(SplitText(" ", ())).finish_reason == FinishReason.STOP


def test_a_text_of_which_nothing_was_translated_is_copied() -> None:
    text = TextAnswer(SplitText("", (STARS,)))
    text.sentences[0] = TranslatedSentence.copied(STARS)

    assert text.finish_reason == FinishReason.COPIED


def test_a_sentence_that_is_a_term_is_the_terms_target() -> None:
    found = FoundTerm(Term(("dog",), ("Hund",)), 0, 3)
    sentence = TranslatedSentence.copied(SourceSentence("Dog", "", None, terms=(found,), written="Hund"))
    text = TextAnswer(SplitText("", (sentence.source,)))
    text.sentences[0] = sentence

    assert (text.text(0), text.score(0), text.finish_reason) == ("Hund", 0.0, FinishReason.STOP)
    assert [(used.found, used.span) for used in sentence.terms] == [(found, (0, 4))]
    assert sentence.tokens() == []


def test_tokens_are_counted_without_eos() -> None:
    assert (answer().num_source_tokens, answer().num_target_tokens) == (3, 4)
    assert (ONE.num_tokens, STARS.num_tokens) == (2, 0)


def test_a_text_that_breaks_a_limit_has_its_error_from_the_start() -> None:
    error = InvalidRequest("contents[0]", "is too long")

    assert TextAnswer(SplitText("", (), error)).error is error


def test_candidates_of_a_rank_stand_in_reading_order() -> None:
    assert [each.text for each in answer().candidates(1)] == ["ein", "zwei", "***"]


def test_a_sentence_is_decoded_with_all_its_hypotheses(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("A dog runs.")[:-1]
    timings = Timings(queue_seconds=1.0)
    result = Result(tuple(Hypothesis(ids[:end], -1.0, FinishReason.STOP) for end in (None, 1)), timings)

    sentence = TranslatedSentence.decoded(ONE, result, restore(ONE, result, tokenizer), tokenizer)

    assert [(each.text, each.num_tokens) for each in sentence.candidates] == [("A dog runs.", len(ids)), ("A", 1)]
    assert (sentence.source, sentence.timings) == (ONE, timings)


def test_what_was_masked_stands_in_every_candidate(tokenizer: Tokenizer) -> None:
    masked = Masker(folds_capitals=True).mask("A DOG RUNS.")
    ids = tokenizer.encode("Ein Hund rennt.")[:-1]
    hypotheses = (Hypothesis(ids, -1.0, FinishReason.STOP), Hypothesis(ids[:-1], -2.0, FinishReason.STOP))

    source, result = SourceSentence("A DOG RUNS.", "", (5, 3), masked=masked), Result(hypotheses, Timings())

    sentence = TranslatedSentence.decoded(source, result, restore(source, result, tokenizer), tokenizer)

    assert [each.text.upper() for each in sentence.candidates] == [each.text for each in sentence.candidates]
