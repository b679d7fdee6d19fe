"""Which direction a request means, of models with pairs and of models with hundreds of languages."""

import dataclasses

import pytest

from server.bundle.languages import LanguagePair, Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import Manifest
from server.errors import InvalidRequest
from server.translation.languages import choose_languages, is_same

MANY = [
    *("af", "ar", "bs", "cs", "da", "de", "en", "es", "fr", "hr", "nb"),
    *("nn", "pt", "sq", "sr", "sv", "uk", "zh-Hans", "zh-Hant"),
]
MOST = "one of the 18 that ListModels names"  # all but the target


@pytest.fixture
def polyglot(manifest: Manifest) -> Manifest:
    """Translates two languages to German, and one to Brazilian Portuguese."""
    pairs = (("en", "de"), ("fr", "de"), ("en", "pt-BR"))
    return dataclasses.replace(
        manifest, language_pairs=tuple(LanguagePair(source=source, target=target) for source, target in pairs)
    )


@pytest.mark.parametrize(
    ("source", "target", "language", "found"),
    [
        ("en", "de", "en", "de"),
        ("FR", "De", "fr", "de"),
        ("", "pt-BR", "en", "pt-BR"),
        ("EN", "PT-br", "en", "pt-BR"),
        ("eng_Latn", "deu_Latn", "en", "de"),
        ("en-GB", "pt", "en", "pt-BR"),
    ],
)
def test_the_source_language_is_chosen_by_the_pairs_that_there_are(
    polyglot: Manifest, source: str, target: str, language: str, found: str
) -> None:
    assert choose_languages(polyglot, source, target) == LanguagePair(source=language, target=found)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", "de", "source_language_code: is required: one of en, fr"),
        ("fr", "pt-BR", "source_language_code: must be one of en for this target, not fr"),
        ("de", "de", "source_language_code: must be one of en, fr for this target, not de"),
        ("en", "fr", "target_language_code: must be one of de, pt-BR, not fr"),
        ("en", "pt-PT", "target_language_code: must be one of de, pt-BR, not pt-PT"),
        ("en", "a b", "target_language_code: must be one of de, pt-BR, not a value of 3 characters"),
        ("e n", "de", "source_language_code: must be one of en, fr for this target, not a value of 3 characters"),
        ("en", "", "target_language_code: is required: one of de, pt-BR"),
    ],
)
def test_a_pair_that_there_is_not_is_refused_with_those_there_are(
    polyglot: Manifest, source: str, target: str, message: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        choose_languages(polyglot, source, target)

    assert str(caught.value) == message


@pytest.fixture
def nation(manifest: Manifest) -> Manifest:
    """Translates any of many languages into any other."""
    languages = Languages(
        source={code: SourceLanguage(prefix=(10 + i,)) for i, code in enumerate(MANY)},
        target={code: TargetLanguage(prefix=(10 + i,)) for i, code in enumerate(MANY)},
    )
    return dataclasses.replace(manifest, language_pairs=(), languages=languages)


def test_any_language_goes_with_any_other_each_with_its_prefix(nation: Manifest) -> None:
    pair = choose_languages(nation, "zh-TW", "no")

    assert (pair.source, pair.target) == ("zh-Hant", "nb")
    assert (pair.source_prefix, pair.target_prefix) == ((10 + MANY.index("zh-Hant"),), (10 + MANY.index("nb"),))


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", "de", f"source_language_code: is required: {MOST}"),
        ("en", "", "target_language_code: is required: one of the 19 that ListModels names"),
        (
            "en",
            "sr-Latn",
            "target_language_code: must be one of the 19 that ListModels names, not sr-Latn; near are sr, bs, hr",
        ),
        ("en", "xx", "target_language_code: must be one of the 19 that ListModels names, not xx"),
        (
            "nno",
            "nn",
            f"source_language_code: must be {MOST} for this target, not nno; near are nb",
        ),
        (
            "hr-Cyrl",
            "hr",
            f"source_language_code: must be {MOST} for this target, not hr-Cyrl; near are bs, sr",
        ),
    ],
)
def test_of_many_languages_near_ones_are_named(nation: Manifest, source: str, target: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        choose_languages(nation, source, target)

    assert str(caught.value) == message


def test_codes_are_the_same_that_mean_the_same_language() -> None:
    assert is_same("de", "deu_Latn")
    assert is_same("en", "en-GB")
    assert not is_same("sr", "hr")
    assert not is_same("de", "no code")
