from dataclasses import replace

import pytest

from server.bundle.bundle import Bundle
from server.bundle.languages import LanguagePair, Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import Manifest
from server.models.pivots import pivot_faults, pivoted_pairs


@pytest.fixture
def manifests(tiny_bundle: Bundle) -> list[Manifest]:
    """French into English, and English into German."""
    pairs = [LanguagePair(source="fr", target="en"), LanguagePair(source="en", target="de")]
    return [replace(tiny_bundle.manifest, language_pairs=(pair,)) for pair in pairs]


def test_a_language_into_and_from_which_models_translate_is_no_fault(manifests: list[Manifest]) -> None:
    assert pivot_faults(["en", "eng_Latn"], manifests) == []


def test_any_other_is_told_with_the_languages_that_are_served(manifests: list[Manifest]) -> None:
    served = "models translate from en, fr into de, en"

    assert pivot_faults(["nl", "en", "fr", "de"], manifests) == [
        f"--pivot: no text can pass through {code}: {served}" for code in ("nl", "fr", "de")
    ]


def test_of_many_languages_the_first_are_named(tiny_bundle: Bundle) -> None:
    pairs = tuple(LanguagePair(source=f"a{letter}", target="de") for letter in "abcdefghijklmnop")

    (fault,) = pivot_faults(["de"], [replace(tiny_bundle.manifest, language_pairs=pairs)])

    assert fault.endswith("from aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al and 4 more into de")


def test_pairs_that_none_translates_and_two_do_are_named_with_their_pivot(manifests: list[Manifest]) -> None:
    assert pivoted_pairs([], manifests) == {}
    assert pivoted_pairs(["nl", "eng_Latn", "en"], manifests) == {("fr", "de"): "eng_Latn"}


def test_what_one_model_translates_passes_through_nothing(manifests: list[Manifest]) -> None:
    many = Languages(
        source={code: SourceLanguage() for code in ("deu_Latn", "en", "fr")},
        target={code: TargetLanguage() for code in ("deu_Latn", "en", "fr", "it")},
    )
    of_many = replace(manifests[0], language_pairs=(), languages=many)
    into_nl = replace(manifests[0], language_pairs=(LanguagePair(source="de", target="nl"),))

    assert pivoted_pairs(["en"], [*manifests, of_many]) == {}
    assert pivoted_pairs(["en", "de"], [*manifests, of_many, into_nl]) == {("en", "nl"): "de", ("fr", "nl"): "de"}
