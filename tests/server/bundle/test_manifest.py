import dataclasses

import pytest

from server.bundle.bundle import Bundle
from server.bundle.languages import LanguagePair, Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import Manifest, SearchDefaults
from server.bundle.states import ssru_states
from server.decoding.options import SearchRules

LANGUAGES = Languages(
    source={"de": SourceLanguage(prefix=(7,)), "en": SourceLanguage(prefix=(8,))},
    target={"de": TargetLanguage(prefix=(7,)), "fr": TargetLanguage(source_prefix=(9,))},
)


def with_languages(manifest: Manifest) -> Manifest:
    golden = dataclasses.replace(manifest.golden, source_language="en", target_language="de")
    return dataclasses.replace(manifest, language_pairs=(), languages=LANGUAGES, golden=golden)


@pytest.mark.parametrize(("variant", "itemsize"), [("cpu-fp32", 4), ("cpu-int8", 1), ("cuda-fp16", 2)])
def test_a_position_takes_a_key_and_a_value_of_each_decoder_layer(
    tiny_bundle: Bundle, variant: str, itemsize: int
) -> None:
    sizes = tiny_bundle.manifest.dimensions

    width = sizes.num_heads * sizes.head_dim
    assert tiny_bundle.manifest.position_bytes(variant) == 2 * sizes.decoder_layers * width * itemsize


def test_a_pair_has_the_prefixes_of_both_its_languages(tiny_bundle: Bundle) -> None:
    manifest = with_languages(tiny_bundle.manifest)

    assert manifest.find_pair("en", "de") == LanguagePair(
        source="en", target="de", source_prefix=(8,), target_prefix=(7,)
    )
    assert manifest.find_pair("en", "fr") == LanguagePair(source="en", target="fr", source_prefix=(9, 8))
    assert manifest.golden_pair == manifest.find_pair("en", "de")


def test_no_language_is_translated_into_itself_or_what_is_not_there(tiny_bundle: Bundle) -> None:
    manifest = with_languages(tiny_bundle.manifest)

    assert [manifest.find_pair(*pair) for pair in (("de", "de"), ("fr", "de"), ("en", "en"))] == [None] * 3
    assert manifest.sources_of("de") == ("en",)
    assert (manifest.source_codes, manifest.target_codes) == (("de", "en"), ("de", "fr"))


def test_pairs_are_found_as_they_are_written(tiny_bundle: Bundle) -> None:
    pairs = (
        LanguagePair(source="en", target="de"),
        LanguagePair(source="de", target="en", source_prefix=(5,)),
        LanguagePair(source="fr", target="de"),
    )
    manifest = dataclasses.replace(tiny_bundle.manifest, language_pairs=pairs)

    assert manifest.find_pair("de", "en") is pairs[1]
    assert manifest.find_pair("en", "fr") is None
    assert manifest.sources_of("de") == ("en", "fr")
    assert (manifest.source_codes, manifest.target_codes) == (("en", "de", "fr"), ("de", "en"))
    assert manifest.golden_pair is pairs[0]


def test_all_prefixes_are_told(tiny_bundle: Bundle) -> None:
    source, target = with_languages(tiny_bundle.manifest).prefixes()

    assert ({*source}, {*target}) == ({(7,), (8,), (9,), ()}, {(7,), ()})


def test_the_rules_of_a_search_are_the_models(tiny_bundle: Bundle) -> None:
    assert tiny_bundle.manifest.search.rules == SearchRules()
    assert SearchDefaults(early_stopping=False, forced_eos=True).rules == SearchRules(
        early_stopping=False, forced_eos=True
    )


def test_states_take_the_same_however_long_a_row_is(tiny_bundle: Bundle) -> None:
    manifest = tiny_bundle.manifest
    layers, width = manifest.dimensions.decoder_layers, manifest.dimensions.d_model
    recurrent = dataclasses.replace(manifest, states=ssru_states(layers, width))

    for variant in ("cpu-int8", "cpu-fp32"):
        assert (manifest.state_bytes(variant), recurrent.state_bytes(variant)) == (0, 2 * layers * width * 4)
    assert 2 * recurrent.position_bytes("cpu-int8") == manifest.position_bytes("cpu-int8")
