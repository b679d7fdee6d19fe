"""The table of routes, and the route of each text of a request."""

import dataclasses

import pytest

from server.bundle.languages import LanguagePair, Languages, SourceLanguage, TargetLanguage
from server.errors import InvalidRequest, ModelNotFound
from server.models.catalogue import Catalogue
from server.models.model import Model
from server.text.splitter import Splitter
from server.translation.detection import DetectedLanguage, LanguageDetection
from server.translation.memory import MemoryBudget
from server.translation.request import TranslationRequest
from server.translation.routes import PlannedLeg, Routes, TextRoute, choose_routes
from tests.server.echo_engine import catalogue_of
from tests.server.translation.parts import of_pairs, with_manifest

SECRET = "a sentence\n"


class Told(LanguageDetection):
    """Is told what it finds, and notes what it was asked.

    Attributes:
        asked: the languages that it was to choose from.
    """

    def __init__(self, *found: DetectedLanguage | InvalidRequest | None) -> None:
        super().__init__(MemoryBudget(1), Splitter())
        self.is_available = True
        self.asked: list[str] = []
        self._found = found

    async def detect(  # type: ignore[override]
        self, texts: list[str], codes: tuple[str, ...], mime_type: str, deadline: float
    ) -> list[DetectedLanguage | InvalidRequest | None]:
        self.asked = sorted(codes)
        return [*self._found]


@pytest.fixture
def catalogue(model: Model) -> Catalogue:
    """A chain of languages, a model of two sources, and one of the default's."""
    return catalogue_of(
        of_pairs(model, "ende", "en-de"),
        of_pairs(model, "defr", "de-fr"),
        of_pairs(model, "frit", "fr-it"),
        of_pairs(model, "toen", "de-en", "fr-en"),
    )


@pytest.fixture
def models(model: Model) -> list[Model]:
    """One for each of two directions, and one for many languages."""
    codes = ("de", "en", "fr", "zh-Hant")
    languages = Languages(
        source={code: SourceLanguage() for code in codes}, target={code: TargetLanguage() for code in codes}
    )
    many = dataclasses.replace(model.manifest, name="many", language_pairs=(), languages=languages)
    return [of_pairs(model, "ende", "en-de"), of_pairs(model, "deen", "de-en"), with_manifest(model, many)]


def table(catalogue: Catalogue, *pivots: str) -> Routes:
    return Routes(catalogue.manifests, catalogue.preferred, pivots)


def request(source: str, target: str, *, model: str = "", num_texts: int = 1) -> TranslationRequest:
    return TranslationRequest(
        contents=["Hi."] * num_texts,
        source_language_code=source,
        target_language_code=target,
        model=model,
        arrived=0.0,
        deadline=1.0,
    )


def plain(legs: tuple[PlannedLeg, ...]) -> list[tuple[str, str]]:
    """Each leg's model, and the direction as the model writes it."""
    return [(leg.manifest.name, f"{leg.pair.source}-{leg.pair.target}") for leg in legs]


def route(catalogue: Catalogue, source: str, target: str, *pivots: str, model: str = "") -> list[tuple[str, str]]:
    found = table(catalogue, *pivots).find(model, source, target)
    assert found.sources == ()
    return plain(found.legs)


def refusal(catalogue: Catalogue, source: str, target: str, *pivots: str, model: str = "") -> str:
    with pytest.raises(InvalidRequest) as caught:
        table(catalogue, *pivots).find(model, source, target)
    return str(caught.value)


def test_what_a_model_translates_directly_goes_by_no_other_language(catalogue: Catalogue) -> None:
    assert route(catalogue, "en", "de", "fr", "de") == [("ende", "en-de")]
    assert route(catalogue, "deu_Latn", "fr", "en") == [("defr", "de-fr")]


def test_what_none_does_goes_by_the_first_pivot_that_joins_two(catalogue: Catalogue, model: Model) -> None:
    catalogue.put(of_pairs(model, "enes", "en-es"))
    catalogue.put(of_pairs(model, "esfr", "es-fr"))

    assert route(catalogue, "en", "fr", "it", "deu_Latn", "es") == [("ende", "en-de"), ("defr", "de-fr")]
    assert route(catalogue, "en", "fr", "es", "de") == [("enes", "en-es"), ("esfr", "es-fr")]


def test_a_leg_has_the_codes_as_they_were_asked_for(catalogue: Catalogue) -> None:
    legs = table(catalogue, "deu").find("", "en_US", "FR").legs

    assert [(leg.source, leg.target) for leg in legs] == [("en_US", "deu"), ("deu", "FR")]


def test_one_model_may_be_both_legs(model: Model) -> None:
    hub = catalogue_of(of_pairs(model, "hub", "de-en", "en-de", "fr-en", "en-fr"))

    assert route(hub, "de", "fr", "en") == [("hub", "de-en"), ("hub", "en-fr")]


def test_there_is_no_pivot_that_the_operator_has_not_named_nor_more_than_one(catalogue: Catalogue) -> None:
    codes = "source_language_code: for this target must be"

    assert refusal(catalogue, "en", "fr") == f"{codes} one of de, not en"
    assert refusal(catalogue, "en", "it", "de", "fr") == f"{codes} one of fr, de, not en"
    assert refusal(catalogue, "en", "xx", "de") == "target_language_code: must be one of de, en, fr, it, not xx"


def test_no_text_goes_out_and_back_to_its_own_language(catalogue: Catalogue) -> None:
    assert refusal(catalogue, "en", "en_GB", "de").startswith("source_language_code: for this target must be one of ")


def test_a_named_model_is_the_only_leg(catalogue: Catalogue) -> None:
    assert route(catalogue, "de", "fr", "en", model="defr") == [("defr", "de-fr")]
    message = "source_language_code: must be one of de for this target, not en"
    assert refusal(catalogue, "en", "fr", "de", model="defr") == message
    with pytest.raises(ModelNotFound):
        table(catalogue, "de").find("other", "en", "fr")


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
    for preferred, expected in (([], by_name), (["many"], many_first)):
        ((name, _),) = route(catalogue_of(*models, preferred=preferred), source, target)
        assert name == expected


def test_the_model_that_is_named_is_chosen_whatever_others_translate(models: list[Model]) -> None:
    assert route(catalogue_of(*models), "en", "de", model="many") == [("many", "en-de")]
    message = "source_language_code: must be one of en for this target, not fr"
    assert refusal(catalogue_of(*models), "fr", "de", model="ende") == message


def test_an_open_source_is_not_guessed(models: list[Model], model: Model) -> None:
    assert table(catalogue_of(*models)).find("", "", "de") == ((), ("en", "fr", "zh-Hant"))
    assert route(catalogue_of(*models, preferred=["ende"]), "", "de") == [("ende", "en-de")]
    assert route(catalogue_of(*models[:2]), "", "de") == [("ende", "en-de")]
    twins = [of_pairs(model, "twin", "en-de"), models[0]]
    assert route(catalogue_of(*twins), "", "de") == [("ende", "en-de")]


def test_what_no_model_translates_is_refused_with_what_they_do(models: list[Model]) -> None:
    two = catalogue_of(*models[:2])

    assert refusal(two, "en", "it") == "target_language_code: must be one of de, en, not it"
    assert refusal(two, "en", "") == "target_language_code: is required: one of de, en"
    assert refusal(two, "", "") == "target_language_code: is required: one of de, en"
    assert refusal(two, "fr", "de") == "source_language_code: for this target must be one of en, not fr"


def test_the_only_model_says_itself_what_it_does_not_translate(models: list[Model]) -> None:
    only = catalogue_of(models[0])

    assert refusal(only, "fr", "xx") == "target_language_code: must be one of de, not xx"
    assert refusal(only, "fr", "de") == "source_language_code: must be one of en for this target, not fr"
    assert refusal(only, "", "xx") == "target_language_code: must be one of de, not xx"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other", "model: other is not served here; ende is"),
        ("Ende", "model: Ende is not served here; ende is"),
        (SECRET, "model: a value of 11 characters is not served here; ende is"),
        ("x" * 65, "model: a value of 65 characters is not served here; ende is"),
    ],
)
@pytest.mark.parametrize("source", ["", "en"])
def test_any_other_model_is_not_found_and_only_plain_names_are_repeated(
    models: list[Model], name: str, message: str, source: str
) -> None:
    with pytest.raises(ModelNotFound) as caught:
        table(catalogue_of(models[0])).find(name, source, "de")

    assert str(caught.value) == message


def test_of_many_models_a_few_are_named(model: Model) -> None:
    many = catalogue_of(*(of_pairs(model, f"m{number}", "en-de") for number in range(10)))

    with pytest.raises(ModelNotFound, match="m0, m1, m2, m3, m4, m5, m6, m7 and 2 more are"):
        table(many).find("other", "", "")


def test_a_leg_has_the_prefixes_of_its_models_languages(model: Model) -> None:
    languages = Languages(
        source={"en": SourceLanguage(prefix=(7,)), "fr": SourceLanguage(prefix=(8,))},
        target={"de": TargetLanguage(source_prefix=(9,), prefix=(10, 11))},
    )
    manifest = dataclasses.replace(model.manifest, language_pairs=(), languages=languages)
    (leg,) = table(catalogue_of(with_manifest(model, manifest))).find("", "fr", "de").legs

    assert leg.pair == LanguagePair(source="fr", target="de", source_prefix=(9, 8), target_prefix=(10, 11))


def test_what_has_been_found_is_kept_and_what_was_refused_is_not(catalogue: Catalogue) -> None:
    routes = table(catalogue, "de")
    first = routes.find("", "en_US", "fr")
    for model, source, target in (
        ("", SECRET * 1000, "fr"),
        ("", "en", SECRET * 1000),
        ("", "auto", SECRET * 1000),
        (SECRET * 1000, "en", "fr"),
        (SECRET * 1000, "", "fr"),
    ):
        with pytest.raises((InvalidRequest, ModelNotFound)):
            routes.find(model, source, target)

    assert routes.find("", "en_US", "fr") is first
    assert routes.find.cache_info().currsize == 1


def test_a_table_keeps_only_so_many_routes_however_codes_are_written(catalogue: Catalogue) -> None:
    routes = table(catalogue)
    limit = routes.find.cache_info().maxsize
    assert limit is not None
    letters = range(ord("A"), ord("Z") + 1)
    regions = [chr(first) + chr(second) for first in letters for second in letters]
    for source in ("de", "De", "dE", "DE", "deu", "deu-Latn", "de-Latn"):
        for region in regions:
            assert routes.find("", f"{source}-{region}", "fr").legs

    assert routes.find.cache_info().currsize == limit < 7 * len(regions)


async def test_texts_whose_source_is_named_go_by_one_route(catalogue: Catalogue) -> None:
    first, second = await choose_routes(table(catalogue), request("de", "fr", num_texts=2), Told())

    assert plain(first.legs) == [("defr", "de-fr")]
    assert first == second == TextRoute(first.legs, None)


@pytest.mark.parametrize("source", ["", "auto", "AUTO"])
async def test_nothing_is_detected_where_there_is_one_source(catalogue: Catalogue, source: str) -> None:
    for model in ("", "defr"):
        detection = Told()
        (chosen,) = await choose_routes(table(catalogue), request(source, "fr", model=model), detection)

        assert (plain(chosen.legs), detection.asked) == ([("defr", "de-fr")], [])


@pytest.mark.parametrize("source", ["", "auto"])
async def test_where_there_are_several_each_text_goes_by_the_route_of_its_language(
    catalogue: Catalogue, source: str
) -> None:
    english, german = DetectedLanguage("en", 0.9), DetectedLanguage("de", 0.8)
    spanish = InvalidRequest("contents[2]", "is in es")
    detection = Told(english, german, spanish, None)

    chosen = await choose_routes(table(catalogue, "de"), request(source, "fr", num_texts=4), detection)

    by_german = [("ende", "en-de"), ("defr", "de-fr")]
    assert detection.asked == ["de", "en"]
    assert [(plain(each.legs), each.found) for each in chosen] == [
        (by_german, english),
        ([("defr", "de-fr")], german),
        ([], spanish),
        (by_german, None),  # it has no letter: any route will do
    ]


async def test_texts_that_all_go_nowhere_are_refused_with_the_first(catalogue: Catalogue) -> None:
    first, second = (InvalidRequest(f"contents[{number}]", "is in es") for number in range(2))
    with pytest.raises(InvalidRequest) as caught:
        await choose_routes(table(catalogue), request("", "en", num_texts=2), Told(first, second))

    assert caught.value is first
    (chosen,) = await choose_routes(table(catalogue), request("", "en"), Told(None))
    assert plain(chosen.legs) == [("toen", "de-en")]


async def test_the_operators_default_wins_unless_the_text_is_to_be_looked_at(model: Model) -> None:
    pairs = [of_pairs(model, "ende", "en-de"), of_pairs(model, "frde", "fr-de")]
    routes = table(catalogue_of(*pairs, preferred=["frde"]))

    assert plain(routes.find("", "", "de").legs) == [("frde", "fr-de")]
    (chosen,) = await choose_routes(routes, request("auto", "de"), Told(DetectedLanguage("en", 1.0)))
    assert plain(chosen.legs) == [("ende", "en-de")]


async def test_without_the_extra_the_source_is_required_with_a_hint(catalogue: Catalogue) -> None:
    detection = Told()
    detection.is_available = False
    for asked in (request("", "en"), request("auto", "en"), request("", "en", model="toen")):
        with pytest.raises(InvalidRequest) as caught:
            await choose_routes(table(catalogue), asked, detection)

        message = str(caught.value)
        assert message.startswith("source_language_code: is required: one of de, fr; this server detects no languages")
        assert message.endswith("pip install 'babelserve[detect]'")
