"""The languages that DeepL's clients see."""

from typing import Any

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest
from server.fronts.deepl_languages import (
    check_formality,
    glossary_pairs,
    write_languages,
    write_pairs,
    write_resources,
    write_v3_languages,
)


def served(*pairs: tuple[str, str], pivots: tuple[str, ...] = ()) -> pb.ListModelsResponse:
    models = [
        pb.ModelInfo(language_pairs=[pb.LanguagePair(source_language_code=source, target_language_code=target)])
        for source, target in pairs
    ]
    return pb.ListModelsResponse(models=models, pivot_language_codes=pivots)


ALL = served(("en", "de"), ("de", "en"), ("en", "pt"), ("en", "zh-Hans"), ("zh-Hans", "en"), ("no", "en"), ("en", "no"))


def languages(which: pb.ListModelsResponse, **fields: str) -> list[dict[str, Any]]:
    return write_languages({name: [value] for name, value in fields.items()}, which)


def test_sources_are_languages_alone() -> None:
    assert languages(ALL) == languages(ALL, type="source")
    assert languages(ALL) == [
        {"language": "DE", "name": "German"},
        {"language": "EN", "name": "English"},
        {"language": "NB", "name": "Norwegian Bokmål"},
        {"language": "ZH", "name": "Chinese"},
    ]


def test_targets_are_what_clients_may_ask_for() -> None:
    targets = languages(ALL, type="target")

    assert [each["language"] for each in targets] == ["DE", "EN-GB", "EN-US", "NB", "PT-BR", "PT-PT", "ZH", "ZH-HANS"]
    assert targets[0] == {"language": "DE", "name": "German", "supports_formality": True}
    assert not any(each["supports_formality"] for each in targets[1:])
    assert not any(each["supports_formality"] for each in languages(served(("fr", "de")), type="target"))


@pytest.mark.parametrize("formality", [pb.FORMALITY_LESS, pb.FORMALITY_MORE])
def test_a_document_has_a_formality_only_in_a_language_that_has_one(formality: pb.Formality) -> None:
    check_formality(pb.TranslateRequest(target_language_code="DE", formality=formality), ALL)
    check_formality(pb.TranslateRequest(target_language_code="EN-US"), ALL)
    with pytest.raises(InvalidRequest, match="formality"):
        check_formality(pb.TranslateRequest(target_language_code="EN-US", formality=formality), ALL)


def test_another_type_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="type"):
        languages(ALL, type="both")


def test_a_glossary_has_a_direction_of_one_model() -> None:
    which = served(("fr", "en"), ("en", "de"), ("en-US", "en-GB"), pivots=("en",))

    assert {each["language"] for each in languages(which, type="target")} >= {"DE"}
    assert list(glossary_pairs(which)) == [("fr", "en"), ("en", "de")]
    assert write_pairs(served(("en", "de"))) == {"supported_languages": [{"source_lang": "en", "target_lang": "de"}]}


def test_version_3_has_sources_and_targets_in_one_list() -> None:
    texts = {each["lang"]: each for each in write_v3_languages({"resource": ["translate_text"]}, ALL)}
    terms = {each["lang"]: each for each in write_v3_languages({"resource": ["glossary"]}, ALL)}

    assert set(texts) == {"de", "en", "en-GB", "en-US", "nb", "pt-BR", "pt-PT", "zh", "zh-Hans"}
    assert texts["en-GB"] == {
        "lang": "en-GB",
        "name": "English (British)",
        "status": "stable",
        "usable_as_source": False,
        "usable_as_target": True,
        "features": {"glossary": {"status": "stable"}, "tag_handling": {"status": "stable"}},
    }
    assert set(texts["de"]["features"]) == {"formality", "glossary", "tag_handling"}
    assert (texts["en"]["usable_as_source"], texts["en"]["usable_as_target"]) == (True, True)
    assert set(terms) == {"de", "en", "nb", "zh"}
    assert terms["de"]["features"] == {}
    documents = {each["lang"]: each for each in write_v3_languages({"resource": ["translate_document"]}, ALL)}
    assert set(documents) == set(texts)
    assert set(documents["de"]["features"]) == {"formality", "glossary"}
    assert write_v3_languages({"resource": ["voice"]}, ALL) == []
    resources = {each["name"]: each["features"] for each in write_resources()}
    assert set(resources) == {"glossary", "translate_document", "translate_text"}
    assert resources["translate_document"][0] == {"name": "formality", "needs_target_support": True}


@pytest.mark.parametrize("resource", ["", "all"])
def test_an_unknown_resource_is_refused(resource: str) -> None:
    with pytest.raises(InvalidRequest, match="resource"):
        write_v3_languages({"resource": [resource]}, ALL)
