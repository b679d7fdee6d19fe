import dataclasses

import pytest

from server.bundle.languages import LanguagePair, Languages, SourceLanguage, TargetLanguage
from server.bundle.manifest import Manifest
from server.errors import InvalidRequest, ModelNotFound, NotServing
from server.models.catalogue import Catalogue
from server.models.model import Model
from server.translation.request import TranslationRequest
from server.translation.routing import choose_model
from tests.server.echo_engine import catalogue_of, idle_supervisor

CANARY = "a sentence\n"


def of_pairs(model: Model, name: str, *pairs: str) -> Model:
    """The model by another name, of pairs such as "en-de"."""
    directions = tuple(LanguagePair(source=pair[:2], target=pair[3:]) for pair in pairs)
    return with_manifest(model, dataclasses.replace(model.manifest, name=name, language_pairs=directions))


def with_manifest(model: Model, manifest: Manifest) -> Model:
    return dataclasses.replace(model, manifest=manifest, supervisor=idle_supervisor(manifest))


@pytest.fixture
def models(model: Model) -> list[Model]:
    """One for each of two directions, and one for many languages."""
    codes = ("de", "en", "fr", "zh-Hant")
    languages = Languages(
        source={code: SourceLanguage() for code in codes}, target={code: TargetLanguage() for code in codes}
    )
    many = dataclasses.replace(model.manifest, name="many", language_pairs=(), languages=languages)
    return [of_pairs(model, "ende", "en-de"), of_pairs(model, "deen", "de-en"), with_manifest(model, many)]


def chosen(catalogue: Catalogue, source: str = "", target: str = "", model: str = "") -> str:
    request = TranslationRequest(
        contents=["Hi."],
        source_language_code=source,
        target_language_code=target,
        model=model,
        arrived=0.0,
        deadline=1.0,
    )
    return choose_model(catalogue, request)


def refusal(catalogue: Catalogue, source: str, target: str) -> str:
    with pytest.raises(InvalidRequest) as caught:
        chosen(catalogue, source, target)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "target", "by_name", "many_first"),
    [
        ("en", "de", "ende", "many"),
        ("eng_Latn", "deu", "ende", "many"),
        ("de", "en", "deen", "many"),
        ("fr", "zh_TW", "many", "many"),
    ],
)
def test_the_first_model_that_translates_it_is_chosen(
    models: list[Model], source: str, target: str, by_name: str, many_first: str
) -> None:
    assert chosen(catalogue_of(*models), source, target) == by_name
    assert chosen(catalogue_of(*models, preferred=["many"]), source, target) == many_first


def test_the_model_that_is_named_is_chosen_whatever_others_translate(models: list[Model]) -> None:
    assert chosen(catalogue_of(*models), "en", "de", "many") == "many"
    with pytest.raises(InvalidRequest, match="source_language_code: must be one of en for this target, not fr"):
        chosen(catalogue_of(*models), "fr", "de", "ende")


def test_an_open_source_is_not_guessed(models: list[Model], model: Model) -> None:
    assert "source_language_code: is required: one of " in refusal(catalogue_of(*models), "", "de")
    assert chosen(catalogue_of(*models, preferred=["ende"]), "", "de") == "ende"
    assert chosen(catalogue_of(*models[:2]), "", "de") == "ende"
    twins = [of_pairs(model, "twin", "en-de"), models[0]]
    assert chosen(catalogue_of(*twins), "", "de") == "ende"


def test_what_no_model_translates_is_refused_with_what_they_do(models: list[Model]) -> None:
    two = catalogue_of(*models[:2])

    assert refusal(two, "en", "it") == "target_language_code: must be one of de, en, not it"
    assert refusal(two, "en", "") == "target_language_code: is required: one of de, en"
    assert refusal(two, "fr", "de") == "source_language_code: for this target must be one of en, not fr"


def test_the_only_model_is_chosen_whatever_is_asked(models: list[Model]) -> None:
    assert chosen(catalogue_of(models[0]), "fr", "xx") == "ende"


def test_before_there_is_a_model_nothing_is_served() -> None:
    with pytest.raises(NotServing):
        chosen(catalogue_of(), "en", "de")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other", "model: other is not served here; ende is"),
        ("Ende", "model: Ende is not served here; ende is"),
        (CANARY, "model: a value of 11 characters is not served here; ende is"),
        ("x" * 65, "model: a value of 65 characters is not served here; ende is"),
    ],
)
def test_any_other_model_is_not_found_and_only_plain_names_are_repeated(
    models: list[Model], name: str, message: str
) -> None:
    with pytest.raises(ModelNotFound) as caught:
        chosen(catalogue_of(models[0]), model=name)

    assert str(caught.value) == message


def test_of_many_models_a_few_are_named(model: Model) -> None:
    many = catalogue_of(*(of_pairs(model, f"m{number}", "en-de") for number in range(10)))

    with pytest.raises(ModelNotFound, match="m0, m1, m2, m3, m4, m5, m6, m7 and 2 more are"):
        chosen(many, model="other")
