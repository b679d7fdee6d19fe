"""What a search is told of terms, with the tiny model's tokenizer."""

import dataclasses

import numpy as np
import pytest

from server.bundle.languages import LanguagePair
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.terms import Replaced, ReplacedWord
from server.models.model import Model
from server.text.alignment import find_spans, words_of
from server.text.glossary import Glossary
from server.text.source import Given, SourceSentence
from server.text.term_table import Term
from server.translation.search_terms import find_choices, find_replaced, terms_of

TEXT = "A dog runs."


def sentence(model: Model, *terms: Term, text: str = TEXT) -> SourceSentence:
    found = tuple(Glossary(terms).find(text))
    return SourceSentence(
        text, "", model.tokenizer.encode(text), terms=found, replaced=Replaced(((),) * len(found), (9,) * 4)
    )


def test_terms_are_told_in_all_forms(model: Model) -> None:
    told = terms_of(model.tokenizer, sentence(model, Term(("dog",), ("hund", "Hunde"))))

    assert told is not None
    (forms,) = told.forms
    assert [model.tokenizer.decode(form) for form in forms] == ["hund", "Hunde"]
    assert told.replaced == Replaced(((),), (9,) * 4)


def test_a_term_that_begins_a_sentence_may_begin_its_translation(model: Model) -> None:
    told = terms_of(model.tokenizer, sentence(model, Term(("dog",), ("hund",)), text='"Dog" runs.'))

    assert told is not None
    assert [model.tokenizer.decode(form) for form in told.forms[0]] == ["hund", "Hund"]


@pytest.mark.parametrize(
    ("text", "language", "begins"),
    [
        ("A dog house.", "de", ["Hund", "Hunds", "Hundes"]),
        ("A dog runs.", "de", ["Hund", "Hunds", "Hundes"]),
        ("A dog.", "de", []),
        ("A dog, this house.", "de", []),
        ("A dog of mine.", "de", []),
        ("A dog house.", "fr", []),
    ],
)
def test_longer_words_may_begin_with_a_term_before_a_word(
    model: Model, text: str, language: str, begins: list[str]
) -> None:
    found = tuple(Glossary([Term(("dog",), ("Hund",))]).inflecting(language).find(text))
    asked = SourceSentence(text, "", model.tokenizer.encode(text), terms=found, replaced=Replaced(((),), (9,) * 4))
    told = terms_of(model.tokenizer, asked)

    assert told is not None
    assert [model.tokenizer.decode(form) for form in told.joined[0]] == begins
    pieces = model.tokenizer.spell_target(told.word_parts)
    assert all(length == len(piece) for piece, length in zip(pieces, told.word_parts.values(), strict=True))


def test_no_more_terms_are_told_than_a_sentence_may_have(model: Model) -> None:
    words = [f"{chr(97 + index)}{index}" for index in range(20)]
    terms = (Term((each,), ("Hund",)) for each in words)
    told = terms_of(model.tokenizer, sentence(model, *terms, text=" ".join(words)))

    assert told is not None
    assert (len(told.forms), len(told.replaced.words)) == (16, 16)


def test_words_that_attend_to_a_term_are_replaced(model: Model) -> None:
    """Here all words attend to the end of the sentence, but for one."""
    asked = sentence(model, Term(("dog",), ("Köter",)))
    ids = model.tokenizer.encode("Ein Hund rennt.")
    of_source = find_spans(model.tokenizer.spell_source(asked.source_ids or ()), TEXT)
    dog = [index for index, span in enumerate(of_source) if span is not None and 2 <= span[0] < 5]
    first, end = words_of(model.tokenizer.spell_target(ids))[1]
    attention = np.zeros((len(ids), len(of_source)), np.float32)
    attention[:, -1] = 1.0
    attention[first:end] = 0.0
    attention[first:end, dog] = 1.0 / len(dog)

    hypothesis = Hypothesis(tuple(ids), 0.0, FinishReason.STOP, ())
    replaced, _ = find_replaced(model.tokenizer, asked, hypothesis, attention, [True])
    assert replaced.words == ((ReplacedWord(first, ids[first], 0),),)
    assert replaced.staying == (*ids[:first], *[-1] * (end - first), *ids[end:])
    assert [tuple(ids[first:end])[: len(run)] for run in replaced.gone] == [*replaced.gone] != []
    assert replaced.begin == ()
    assert find_replaced(model.tokenizer, asked, hypothesis, None, [True]) == (Replaced(((),), tuple(ids)), "")


def test_a_mark_is_not_replaced(model: Model) -> None:
    """Here only the mark at the end attends to the term."""
    asked = sentence(model, Term(("dog",), ("Köter",)))
    ids = model.tokenizer.encode("Ein Hund rennt.")
    of_source = find_spans(model.tokenizer.spell_source(asked.source_ids or ()), TEXT)
    dog = [index for index, span in enumerate(of_source) if span is not None and 2 <= span[0] < 5]
    attention = np.zeros((len(ids), len(of_source)), np.float32)
    attention[:, -1] = 1.0
    mark = model.tokenizer.spell_target(ids).index(".")
    attention[mark] = 0.0
    attention[mark, dog] = 1.0 / len(dog)

    found = find_replaced(model.tokenizer, asked, Hypothesis(tuple(ids), 0.0, FinishReason.STOP, ()), attention, [True])
    assert found == (Replaced(((),), tuple(ids)), "")


def test_what_is_long_before_a_missing_term_is_written_again(model: Model) -> None:
    """Here the fifth word attends to the term, and the third is the first that may change."""
    asked = sentence(model, Term(("dog",), ("Köter",)))
    ids = model.tokenizer.encode("Da ist es der Hund da.")
    of_source = find_spans(model.tokenizer.spell_source(asked.source_ids or ()), TEXT)
    dog = [index for index, span in enumerate(of_source) if span is not None and 2 <= span[0] < 5]
    words = words_of(model.tokenizer.spell_target(ids))
    first, end = words[4]
    attention = np.zeros((len(ids), len(of_source)), np.float32)
    attention[:, -1] = 1.0
    attention[first:end] = 0.0
    attention[first:end, dog] = 1.0 / len(dog)

    hypothesis = Hypothesis(tuple(ids), 0.0, FinishReason.STOP, ())
    assert find_replaced(model.tokenizer, asked, hypothesis, attention, [True])[0].begin == tuple(ids[: words[1][0]])
    assert find_replaced(model.tokenizer, asked, hypothesis, attention, [False])[0].begin == ()


def exchanged(
    model: Model, asked: SourceSentence, translation: str, *linked: tuple[str, str], reason: FinishReason
) -> str:
    """What `find_replaced` makes of a translation whose linked words attend to their sources, all others to the end."""
    ids = model.tokenizer.encode(translation)[:-1]
    of_source = find_spans(model.tokenizer.spell_source(asked.source_ids or ()), asked.text)
    attention = np.zeros((len(ids), len(of_source)), np.float32)
    attention[:, -1] = 1.0
    of_target = find_spans(model.tokenizer.spell_target(ids), translation)

    def within(spans: list[tuple[int, int] | None], text: str, word: str) -> list[int]:
        begin = text.index(word)
        return [index for index, span in enumerate(spans) if span and begin <= span[0] < begin + len(word)]

    for target, source in linked:
        rows, columns = within(of_target, translation, target), within(of_source, asked.text, source)
        attention[rows] = 0.0
        attention[np.ix_(rows, columns)] = 1.0 / len(columns)
    is_missing = [term.term.targets[0] not in translation for term in asked.terms]
    return find_replaced(model.tokenizer, asked, Hypothesis(ids, -1.0, reason), attention, is_missing)[1]


def test_missing_terms_are_put_where_words_stand_for_them(model: Model) -> None:
    stop = FinishReason.STOP
    dog = sentence(model, Term(("dog",), ("Tier",)))
    both = sentence(model, Term(("dog",), ("Tier",)), Term(("runs",), ("rennt",)))
    first = sentence(model, Term(("dog",), ("tier",)), text="Dog runs.")

    assert exchanged(model, dog, "Ein Hund rennt.", ("Hund", "dog"), reason=stop) == "Ein Tier rennt."
    assert exchanged(model, dog, "Der Haus Hund geht.", ("Haus Hund", "dog"), reason=stop) == "Der Tier geht."
    assert (
        exchanged(model, both, "Ein Hund rennt.", ("Hund", "dog"), ("rennt", "runs"), reason=stop) == "Ein Tier rennt."
    )
    assert exchanged(model, first, "Hund rennt.", ("Hund", "Dog"), reason=stop) == "Tier rennt."


def test_terms_without_one_place_of_their_own_are_put_nowhere(model: Model) -> None:
    stop = FinishReason.STOP
    dog = sentence(model, Term(("dog",), ("Tier",)))
    both = sentence(model, Term(("A",), ("Kein",)), Term(("dog",), ("Tier",)))

    assert exchanged(model, dog, "Ein Hund rennt.", reason=stop) == ""
    assert exchanged(model, dog, "Der Hund ist Haus.", ("Hund", "dog"), ("Haus", "dog"), reason=stop) == ""
    assert exchanged(model, both, "Da Hund rennt.", ("Hund", "A dog"), reason=stop) == ""
    assert exchanged(model, dog, "Ein Hund rennt.", ("Hund", "dog"), reason=FinishReason.LENGTH) == ""
    assert exchanged(model, dog, "Die Haus/Hund rennt.", ("Hund", "dog"), reason=stop) == "", "what touches it would go"
    assert exchanged(model, dog, "Die Haus-Hund rennt.", ("Hund", "dog"), reason=stop) == ""


PAIR = LanguagePair(source="en", target="de")


def agreeing(model: Model, asked: SourceSentence, translation: str, pair: LanguagePair = PAIR) -> list[str]:
    """What `find_choices` returns, as texts; the first translation lacked all terms but the last."""
    hypothesis = Hypothesis(model.tokenizer.encode(translation)[:-1], -1.0, FinishReason.STOP)
    asked = dataclasses.replace(asked, lacking=(True,) * (len(asked.terms) - 1) + (False,))
    return [model.tokenizer.decode(ids[:-1]) for ids in find_choices(model.tokenizer, asked, hypothesis, pair)]


def test_words_before_terms_that_were_lacking_are_tried_as_they_would_agree(model: Model) -> None:
    terms = Term(("dog",), ("Katze",)), Term(("bone",), ("Drucker",)), Term(("man",), ("Haus",))
    asked = sentence(model, *terms, text="A dog, a bone and a man.")
    translation = "Das Katze sieht die Drucker und die Haus."

    assert agreeing(model, asked, translation) == [
        "Die Katze sieht der Drucker und die Haus.",
        "Die Katze sieht den Drucker und die Haus.",
    ]
    assert agreeing(model, asked, translation, LanguagePair(source="en", target="fr")) == []
    assert agreeing(model, asked, "Die Katze sieht den Drucker und die Haus.") == []
    assert agreeing(model, asked, "Das Hund sieht die Knochen.") == []


def test_the_translation_before_is_tried_with_the_terms_in_it(model: Model) -> None:
    asked = sentence(model, Term(("dog",), ("Katze",)), Term(("man",), ("Haus",)), text="A dog and a man.")
    asked = dataclasses.replace(asked, exchanged="Das Katze rennt.")

    assert agreeing(model, asked, "Die Katze geht.") == ["Die Katze geht.", "Die Katze rennt."]
    assert agreeing(model, asked, "Die Katze rennt.") == []
    assert agreeing(model, asked, "Die Katze geht zum Haus.") == [], "it has more terms"
    assert agreeing(model, asked, "Der Hund geht.") == ["Die Katze rennt."], "the second search has fewer"
    in_french = LanguagePair(source="en", target="fr")
    assert agreeing(model, asked, "Die Katze geht.", in_french) == ["Die Katze geht.", "Das Katze rennt."]


def test_words_before_a_name_stay(model: Model) -> None:
    asked = dataclasses.replace(sentence(model, Term(("Katze",), ("Katze",)), text="Katze"), lacking=(True,))

    hypothesis = Hypothesis(model.tokenizer.encode("Das Katze.")[:-1], -1.0, FinishReason.STOP)
    assert find_choices(model.tokenizer, asked, hypothesis, PAIR) == ()


def test_few_translations_are_tried(model: Model) -> None:
    asked = sentence(model, Term(("dog",), ("Drucker",)), text="dog " * 6)

    assert len(agreeing(model, asked, "die Drucker " * 6)) == 8


def test_what_was_cut_off_or_begins_as_the_caller_says_stays(model: Model) -> None:
    asked = dataclasses.replace(sentence(model, Term(("dog",), ("Katze",))), lacking=(True,))
    ids = model.tokenizer.encode("Das Katze rennt.")[:-1]
    whole, cut_off = (Hypothesis(ids, -1.0, reason) for reason in (FinishReason.STOP, FinishReason.LENGTH))
    begun = dataclasses.replace(asked, prefix=Given("Das", (5,)))

    assert len(find_choices(model.tokenizer, asked, whole, PAIR)) == 1
    assert find_choices(model.tokenizer, asked, cut_off, PAIR) == ()
    assert find_choices(model.tokenizer, begun, whole, PAIR) == ()
