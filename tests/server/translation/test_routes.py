import pytest

from server.errors import InvalidRequest, ModelNotFound
from server.models.catalogue import Catalogue
from server.models.model import Model
from server.translation.detection import DetectedLanguage, LanguageDetection
from server.translation.memory import MemoryBudget
from server.translation.request import TranslationRequest
from server.translation.routes import Step, Way, choose_ways
from tests.server.echo_engine import catalogue_of
from tests.server.translation.test_routing import of_pairs


class Told(LanguageDetection):
    """Is told what it finds, and notes what it was asked.

    Attributes:
        asked: the languages that it was to choose from.
    """

    def __init__(self, *found: DetectedLanguage | InvalidRequest | None) -> None:
        super().__init__(MemoryBudget(1))
        self.is_available = True
        self.asked: list[str] = []
        self._found = found

    async def detect(  # type: ignore[override]
        self, texts: list[str], codes: tuple[str, ...]
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


def request(source: str, target: str, *, model: str = "", num_texts: int = 1) -> TranslationRequest:
    return TranslationRequest(
        contents=["Hi."] * num_texts,
        source_language_code=source,
        target_language_code=target,
        model=model,
        arrived=0.0,
        deadline=1.0,
    )


async def steps(catalogue: Catalogue, source: str, target: str, *pivots: str, model: str = "") -> list[Step]:
    (way,) = await choose_ways(catalogue, request(source, target, model=model), pivots, Told())
    return [*way.steps]


async def refusal(catalogue: Catalogue, asked: TranslationRequest, *pivots: str) -> str:
    detection = Told()
    detection.is_available = False
    with pytest.raises(InvalidRequest) as caught:
        await choose_ways(catalogue, asked, pivots, detection)
    return str(caught.value)


async def test_what_a_model_translates_directly_goes_by_no_other_language(catalogue: Catalogue) -> None:
    assert await steps(catalogue, "en", "de", "fr", "de") == [Step("ende", "en", "de")]
    assert await steps(catalogue, "deu_Latn", "fr", "en") == [Step("defr", "deu_Latn", "fr")]


async def test_what_none_does_goes_by_the_first_pivot_that_joins_two(catalogue: Catalogue, model: Model) -> None:
    catalogue.put(of_pairs(model, "enes", "en-es"))
    catalogue.put(of_pairs(model, "esfr", "es-fr"))

    assert await steps(catalogue, "en", "fr", "it", "de", "es") == [Step("ende", "en", "de"), Step("defr", "de", "fr")]
    assert await steps(catalogue, "en", "fr", "es", "de") == [Step("enes", "en", "es"), Step("esfr", "es", "fr")]


async def test_one_model_may_be_both_steps(model: Model) -> None:
    hub = catalogue_of(of_pairs(model, "hub", "de-en", "en-de", "fr-en", "en-fr"))

    assert await steps(hub, "de", "fr", "en") == [Step("hub", "de", "en"), Step("hub", "en", "fr")]


async def test_there_is_no_pivot_that_the_operator_has_not_named_nor_more_than_one(catalogue: Catalogue) -> None:
    codes = "source_language_code: for this target must be"

    assert await refusal(catalogue, request("en", "fr")) == f"{codes} one of de, not en"
    assert await refusal(catalogue, request("en", "it"), "de", "fr") == f"{codes} one of fr, de, not en"
    assert await refusal(catalogue, request("en", "xx"), "de") == (
        "target_language_code: must be one of de, en, fr, it, not xx"
    )


async def test_no_text_goes_out_and_back_to_its_own_language(catalogue: Catalogue) -> None:
    with pytest.raises(InvalidRequest):
        await steps(catalogue, "en", "en_GB", "de")


async def test_a_named_model_is_the_only_step(catalogue: Catalogue) -> None:
    assert await steps(catalogue, "de", "fr", "en", model="defr") == [Step("defr", "de", "fr")]
    with pytest.raises(InvalidRequest, match="must be one of de for this target, not en"):
        await steps(catalogue, "en", "fr", "de", model="defr")
    with pytest.raises(ModelNotFound):
        await steps(catalogue, "en", "fr", "de", model="other")


@pytest.mark.parametrize("source", ["", "auto", "AUTO"])
async def test_nothing_is_detected_where_there_is_one_source(catalogue: Catalogue, source: str) -> None:
    assert await steps(catalogue, source, "fr") == [Step("defr", "", "fr")]
    assert await steps(catalogue, source, "fr", model="defr") == [Step("defr", "", "fr")]


@pytest.mark.parametrize("source", ["", "auto"])
async def test_where_there_are_several_each_text_goes_the_way_of_its_language(
    catalogue: Catalogue, source: str
) -> None:
    english, german = DetectedLanguage("en", 0.9), DetectedLanguage("de", 0.8)
    spanish = InvalidRequest("contents[2]", "is in es")
    detection = Told(english, german, spanish, None)

    ways = await choose_ways(catalogue, request(source, "fr", num_texts=4), ["de"], detection)

    by_german = (Step("ende", "en", "de"), Step("defr", "de", "fr"))
    assert detection.asked == ["de", "en"]
    assert ways == [
        Way(by_german, english),
        Way((Step("defr", "de", "fr"),), german),
        Way((), spanish),
        Way(by_german, None),  # it has no letter: any way will do
    ]


async def test_texts_that_all_go_nowhere_are_refused_with_the_first(catalogue: Catalogue) -> None:
    first, second = (InvalidRequest(f"contents[{number}]", "is in es") for number in range(2))
    with pytest.raises(InvalidRequest) as caught:
        await choose_ways(catalogue, request("", "en", num_texts=2), [], Told(first, second))

    assert caught.value is first
    (way,) = await choose_ways(catalogue, request("", "en"), [], Told(None))
    assert way.steps == (Step("toen", "de", "en"),)


async def test_the_operators_default_wins_unless_the_text_is_to_be_looked_at(model: Model) -> None:
    pairs = [of_pairs(model, "ende", "en-de"), of_pairs(model, "frde", "fr-de")]
    catalogue = catalogue_of(*pairs, preferred=["frde"])

    assert await steps(catalogue, "", "de") == [Step("frde", "", "de")]
    (way,) = await choose_ways(catalogue, request("auto", "de"), [], Told(DetectedLanguage("en", 1.0)))
    assert way.steps == (Step("ende", "en", "de"),)


async def test_without_the_extra_the_source_is_required_with_a_hint(catalogue: Catalogue) -> None:
    for asked in (request("", "en"), request("auto", "en"), request("", "en", model="toen")):
        message = await refusal(catalogue, asked)

        assert message.startswith("source_language_code: is required: one of de, fr; this server detects no languages")
        assert message.endswith("pip install 'babelserve[detect]'")
