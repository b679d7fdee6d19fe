from dataclasses import replace

import pytest

from server.bundle.bundle import Bundle
from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.models.pivots import pivot_faults


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
