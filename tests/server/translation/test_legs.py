import dataclasses

from server.bundle.masking import Masking
from server.decoding.options import DecodingOptions
from server.models.model import Model
from server.text.masking import Masker
from server.translation.legs import Leg


def test_texts_are_split_by_the_rules_of_the_legs_language_and_model(model: Model) -> None:
    pair = dataclasses.replace(model.manifest.language_pairs[0], source="zh-Hant", source_prefix=(7, 8))
    rules = Leg(model=model, pair=pair, options=DecodingOptions()).split_rules

    assert (rules.language, rules.max_tokens, rules.num_added) == ("zh", 64, 3)
    assert rules.encode("A dog.") == model.tokenizer.encode("A dog.", (7, 8))


def test_sentences_are_masked_as_the_model_has_learned_to_read(model: Model) -> None:
    manifest = dataclasses.replace(model.manifest, masking=Masking(num_placeholders=2, folds_capitals=True))
    leg = Leg(
        model=dataclasses.replace(model, manifest=manifest),
        pair=manifest.language_pairs[0],
        options=DecodingOptions(),
    )

    assert leg.split_rules.masker == Masker(num_placeholders=2, folds_capitals=True)
