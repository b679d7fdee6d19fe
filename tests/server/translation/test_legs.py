import dataclasses

import numpy as np
import pytest

from server.bundle.alignment import Alignment, Head
from server.bundle.languages import LanguagePair
from server.bundle.masking import Masking
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.terms import Replaced
from server.errors import InvalidRequest
from server.models.model import Model
from server.text.alignment import find_spans
from server.text.glossary import Glossary
from server.text.masked import Restored
from server.text.masking import Masker
from server.text.source import Given, SourceSentence
from server.text.term_table import Term
from server.translation.legs import Leg, borrow_legs
from server.translation.request import DecodingRequest, TextOptions, TranslationRequest
from server.translation.routes import PlannedLeg, Routes
from tests.server.translation.parts import of_pairs, with_manifest

HYPOTHESIS = Hypothesis((5,), 0.0, FinishReason.STOP, ())


@pytest.fixture
def models(model: Model) -> dict[str, Model]:
    two = of_pairs(model, "ende", "en-de"), of_pairs(model, "defr", "de-fr")
    return {each.manifest.name: each for each in two}


def request(*contents: str, **decoding: int | None) -> TranslationRequest:
    return TranslationRequest(
        contents=contents or ["Hi."],
        source_language_code="en",
        target_language_code="fr",
        decoding=DecodingRequest(**decoding),  # type: ignore[arg-type]
        arrived=0.0,
        deadline=1.0,
    )


def planned(models: dict[str, Model]) -> tuple[PlannedLeg, ...]:
    """The legs from English to French."""
    return Routes([each.manifest for each in models.values()], [], ["de"]).find("", "en", "fr").legs


def legs_of(asked: TranslationRequest, models: dict[str, Model], beam_size: int = 0) -> tuple[Leg, ...]:
    return borrow_legs(asked, planned(models), models, beam_size)


def test_the_first_leg_makes_one_translation_as_long_as_it_is(models: dict[str, Model]) -> None:
    asked = request(beam_size=5, num_hypotheses=3, max_output_tokens=9)
    first, second = (leg.options for leg in legs_of(asked, models, 2))

    assert (first.beam_size, first.num_hypotheses, first.max_output_tokens) == (5, 1, None)
    assert (second.beam_size, second.num_hypotheses, second.max_output_tokens) == (5, 3, 9)
    assert [leg.options.beam_size for leg in legs_of(request(), models, 2)] == [2, 2]


def test_an_option_must_be_within_the_limits_of_both_models(models: dict[str, Model]) -> None:
    manifest = models["ende"].manifest
    narrow = dataclasses.replace(manifest, limits=dataclasses.replace(manifest.limits, max_beam_size=2))
    models["ende"] = with_manifest(models["ende"], narrow)

    with pytest.raises(InvalidRequest, match="beam_size: must be from 1 to 2"):
        legs_of(request(beam_size=4), models)


def test_the_version_that_is_borrowed_decides_what_the_codes_mean(models: dict[str, Model]) -> None:
    legs = planned(models)
    pair = LanguagePair(source="en-GB", target="de", source_prefix=(7,), target_prefix=(8, 9))
    newer = dataclasses.replace(models["ende"].manifest, version="8", language_pairs=(pair,))
    models["ende"] = with_manifest(models["ende"], newer)

    with pytest.raises(InvalidRequest, match="source_language_code: must be one of en-GB for this target, not en"):
        borrow_legs(request(), legs, models, 0)

    pair = dataclasses.replace(pair, source="en")
    newer = dataclasses.replace(newer, language_pairs=(pair,))
    models["ende"] = with_manifest(models["ende"], newer)
    borrowed = borrow_legs(request(), legs, models, 0)

    assert [leg.pair for leg in borrowed] == [pair, LanguagePair(source="de", target="fr")]
    assert [leg.options.forced_prefix for leg in borrowed] == [(8, 9), ()]


def test_texts_are_split_by_the_rules_of_the_legs_language_and_model(model: Model) -> None:
    pair = dataclasses.replace(model.manifest.language_pairs[0], source="zh-Hant", source_prefix=(7, 8))
    rules = Leg(model=model, pair=pair, options=DecodingOptions()).split_rules

    assert (rules.language, rules.max_tokens, rules.num_added) == ("zh", 64, 3)
    assert rules.encode("A dog.") == model.tokenizer.encode("A dog.", (7, 8))


def leg_of(model: Model, masking: Masking) -> Leg:
    manifest = dataclasses.replace(model.manifest, masking=masking)
    masked = dataclasses.replace(model, manifest=manifest)
    return Leg(model=masked, pair=manifest.language_pairs[0], options=DecodingOptions())


def test_sentences_are_masked_as_the_model_can_read(model: Model) -> None:
    leg = leg_of(model, Masking(num_placeholders=2, folds_capitals=True, codes=("%{}",)))

    assert leg.split_rules.masker == Masker(
        carriers=Masking(num_placeholders=2, codes=("%{}",)).carriers,
        characters=model.characters,
        folds_capitals=True,
        language="de",
    )


def test_all_legs_keep_what_the_caller_wants(models: dict[str, Model]) -> None:
    asked = dataclasses.replace(request(), text=TextOptions(keep=["Acme", ("<<", ">>")]))

    for leg in legs_of(asked, models):
        masked = leg.split_rules.masker.mask("An Acme <<of mine>> runs.")
        assert [part.text for part in masked.parts] == ["Acme", "<<of mine>>"]


def test_each_leg_adapts_quantities_from_its_own_source_if_that_is_asked_for(models: dict[str, Model]) -> None:
    asked = dataclasses.replace(request(), text=TextOptions(adapt_quantities=True))

    for leg in legs_of(asked, models):
        assert leg.split_rules.masker.adapts_from == leg.pair.source
    for leg in legs_of(request(), models):
        assert leg.split_rules.masker.adapts_from == ""


def test_a_sentence_that_lost_a_part_is_shown_with_other_carriers(model: Model) -> None:
    leg = leg_of(model, Masking(num_placeholders=2, codes=("%{}",)))
    rules = leg.split_rules
    masked = rules.masker.mask("A dog a.txt runs.")
    sentence = SourceSentence("A dog a.txt runs.", "", rules.encode(masked.text), masked=masked)

    again = leg.ask_again(sentence, masked.restore("Ein Hund"), HYPOTHESIS, None)

    assert again is not None
    assert again.source_ids == model.tokenizer.encode("A dog %1 runs.")
    assert leg.ask_again(dataclasses.replace(sentence, masked=None), Restored("Ein Hund"), HYPOTHESIS, None) is None
    given = dataclasses.replace(sentence, prefix=Given("Ein", (7,)))
    assert leg.ask_again(given, masked.restore("Ein Hund"), HYPOTHESIS, None) is None
    assert leg.options_for(given).target_prefix == (7,)


def test_terms_are_refused_over_a_language_between_and_of_models_that_cannot_be_told(
    models: dict[str, Model],
) -> None:
    asked = dataclasses.replace(request(), glossary=Glossary([Term(("dog",), ("Hund",))]))

    with pytest.raises(InvalidRequest, match=r"^glossary: must be empty for texts that go over a language between"):
        legs_of(asked, models)


def test_a_sentence_that_lacks_a_term_is_asked_for_again_once(model: Model) -> None:
    terms = (Term(("dog",), ("Hund",)), Term(("cat",), ("Katze",)))
    leg = Leg(
        model=model,
        pair=model.manifest.language_pairs[0],
        options=DecodingOptions(beam_size=1, with_scores=False),
        glossary=Glossary(terms),
    )
    found = tuple(Glossary(terms).find("A dog runs."))
    sentence = SourceSentence("A dog runs.", "", model.tokenizer.encode("A dog runs."), terms=found)

    assert leg.options_for(sentence).terms is None
    assert leg.ask_again(sentence, Restored("Ein Hund rennt."), HYPOTHESIS, None) is None
    again = leg.ask_again(sentence, Restored("Ein Köter rennt."), HYPOTHESIS, None)
    assert again == dataclasses.replace(sentence, replaced=Replaced(((),), HYPOTHESIS.ids), lacking=(True,))
    assert again is not None
    assert leg.ask_again(again, Restored("Ein Köter rennt."), HYPOTHESIS, None) is None
    options = leg.options_for(again)
    assert (options.beam_size, options.with_scores) == (6, True)
    assert options.terms is not None
    assert options.max_output_tokens == 1 + options.terms.num_tokens + 1


@pytest.mark.parametrize(
    ("options", "is_whole", "exchanged"),
    [
        (DecodingOptions(), True, "Ein Hund rennt."),
        (DecodingOptions(), False, ""),
        (DecodingOptions(max_output_tokens=9), True, ""),
        (DecodingOptions(suppressed=((9,),)), True, ""),
        (DecodingOptions(min_length_ratio=0.5), True, ""),
        (DecodingOptions(max_length_ratio=2.0), True, ""),
        (DecodingOptions(num_hypotheses=2), True, ""),
    ],
)
def test_terms_are_put_into_a_whole_translation_that_no_option_bounds(
    model: Model, options: DecodingOptions, is_whole: bool, exchanged: str
) -> None:
    leg = Leg(model=model, pair=model.manifest.language_pairs[0], options=options)
    found = tuple(Glossary([Term(("dog",), ("Hund",))]).find("A dog runs."))
    sentence = SourceSentence("A dog runs.", "", model.tokenizer.encode("A dog runs."), terms=found)
    ids = model.tokenizer.encode("Ein Mann rennt.")[:-1]
    attention = np.zeros((len(ids), len(sentence.source_ids or ())), np.float32)
    of_source = find_spans(model.tokenizer.spell_source(sentence.source_ids or ()), "A dog runs.")
    of_target = find_spans(model.tokenizer.spell_target(ids), "Ein Mann rennt.")
    dog = [index for index, span in enumerate(of_source) if span is not None and 2 <= span[0] < 5]
    man = [index for index, span in enumerate(of_target) if span is not None and 4 <= span[0] < 8]
    attention[:, -1] = 1.0
    attention[man] = 0.0
    attention[np.ix_(man, dog)] = 1.0 / len(dog)

    restored = Restored("Ein Mann rennt.", is_whole=is_whole)
    again = leg.ask_again(sentence, restored, Hypothesis(ids, -1.0, FinishReason.STOP), attention)

    assert again is not None
    assert again.exchanged == exchanged


def test_words_that_do_not_agree_with_a_term_are_asked_for_once(model: Model) -> None:
    options = DecodingOptions(num_hypotheses=2, use_shortlist=True, coverage_penalty=0.1)
    leg = Leg(model=model, pair=model.manifest.language_pairs[0], options=options)
    found = tuple(Glossary([Term(("dog",), ("Hund",))]).find("A dog runs."))
    sentence = SourceSentence("A dog runs.", "", model.tokenizer.encode("A dog runs."), terms=found)
    searched = dataclasses.replace(sentence, replaced=Replaced(((),), ()), lacking=(True,))
    hypothesis = Hypothesis(model.tokenizer.encode("Die Hund rennt.")[:-1], 0.0, FinishReason.STOP)

    again = leg.ask_again(searched, Restored("Die Hund rennt."), hypothesis, None)

    assert again is not None
    assert again == dataclasses.replace(searched, choices=again.choices)
    assert [model.tokenizer.decode(ids[:-1]) for ids in again.choices] == ["Der Hund rennt.", "Den Hund rennt."]
    asked = leg.options_for(again)
    assert (asked.given_targets, asked.beam_size, asked.num_hypotheses) == (again.choices, 2, 1)
    assert (asked.terms, asked.use_shortlist, asked.coverage_penalty) == (None, False, 0.0)
    assert leg.ask_again(again, Restored("Der Hund rennt."), hypothesis, None) is None
    assert leg.ask_again(sentence, Restored("Die Hund rennt."), hypothesis, None) is None


@pytest.mark.parametrize(
    ("is_only", "can_align", "has_prefixes", "expected"),
    [(True, True, False, True), (False, True, False, False), (True, False, False, False), (True, True, True, False)],
)
def test_marks_round_words_are_not_shown_where_the_translation_is_aligned(
    model: Model, is_only: bool, can_align: bool, has_prefixes: bool, expected: bool
) -> None:
    alignment = Alignment(heads=(Head(layer=0, head=0, is_shifted=False),), error_rate=0.1, num_sentences=200)
    manifest = dataclasses.replace(model.manifest, alignment=alignment if can_align else None)
    aligned = with_manifest(model, manifest)
    leg = Leg(
        model=aligned,
        pair=manifest.language_pairs[0],
        options=DecodingOptions(beam_size=1),
        is_only=is_only,
        has_prefixes=has_prefixes,
    )

    masked = leg.split_rules.masker.mask("A *dog* runs.")
    sentence = SourceSentence("A *dog* runs.", "", model.tokenizer.encode("A dog runs."), masked=masked)

    assert bool(masked.pairs) == expected
    assert leg.options_for(sentence).with_alignment == expected
