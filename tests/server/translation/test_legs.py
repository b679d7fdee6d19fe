import dataclasses

from server.bundle.masking import Masking
from server.decoding.options import DecodingOptions
from server.models.model import Model
from server.text.masked import Restored
from server.text.masking import Masker
from server.text.sentences import SourceSentence
from server.translation.legs import Leg


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


def test_a_sentence_that_lost_a_part_is_shown_with_other_carriers(model: Model) -> None:
    leg = leg_of(model, Masking(num_placeholders=2, codes=("%{}",)))
    rules = leg.split_rules
    masked = rules.masker.mask("A dog a.txt runs.")
    sentence = SourceSentence("A dog a.txt runs.", "", rules.encode(masked.text), masked=masked)

    again = leg.ask_again(sentence, masked.restore("Ein Hund"))

    assert again is not None
    assert again.source_ids == model.tokenizer.encode("A dog %1 runs.")
    assert leg.ask_again(dataclasses.replace(sentence, masked=None), Restored("Ein Hund")) is None
