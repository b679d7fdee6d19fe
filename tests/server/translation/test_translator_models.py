"""Which models the translator sends a request to: one of two versions, or two in a row."""

import asyncio
import dataclasses
import weakref
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from server.access.token_bucket import TokenBucket
from server.bundle.languages import LanguagePair
from server.errors import InvalidRequest, Overloaded
from server.models.catalogue import Catalogue
from server.models.model import Model, ServedModel
from server.models.on_demand import OnDemand
from server.models.traffic_split import TrafficSplit
from server.telemetry.catalogue_metrics import CatalogueMetrics
from server.telemetry.metrics import Metrics
from server.text.splitter import MAX_TEXT_BYTES, Splitter
from server.translation.detection import DetectedLanguage, LanguageDetection
from server.translation.translator import Translator
from tests.server.echo_engine import EchoEngine, idle_supervisor, with_weights
from tests.server.translation.parts import of_pairs, of_tenant, request, with_manifest


async def test_a_requests_key_decides_which_version_it_goes_to(translator: Translator, model: Model) -> None:
    split = TrafficSplit.of({"7": 50, "8": 50})
    manifest = dataclasses.replace(model.manifest, version="8")
    translator.catalogue.add(dataclasses.replace(model, manifest=manifest, supervisor=idle_supervisor(manifest)))
    translator.catalogue.split("echo", split)
    keys = [f"key {number}" for number in range(20)]
    versions = []
    for key in keys:
        with await translator.accept(dataclasses.replace(request("One dog."), traffic_key=key)) as job:
            versions.append(job.routes[0][0].model.manifest.version)

    assert versions == [split.choose("echo", key) for key in keys]
    assert set(versions) == {"7", "8"}
    with pytest.raises(InvalidRequest, match="traffic_key"):
        await translator.accept(dataclasses.replace(request("One dog."), traffic_key="k" * 257))


async def test_a_request_ends_on_the_model_on_which_it_began(
    translator: Translator, model: Model, engine: EchoEngine
) -> None:
    engine.is_holding = True
    newer = dataclasses.replace(model, manifest=dataclasses.replace(model.manifest, version="8"), engine=EchoEngine())
    with await translator.accept(request("One dog.")) as job:
        translator.catalogue.put(newer)
        with await translator.accept(request("One dog.")) as later:
            await later.finish()
        assert engine.refuses is None  # it has not been stopped
        engine.release(0)
        await job.finish()

    assert [each.routes[0][0].model.manifest.version for each in (job, later)] == ["7", "8"]


async def test_the_version_that_is_borrowed_says_what_its_sentences_begin_with(
    translator: Translator, model: Model, engine: EchoEngine
) -> None:
    pair = LanguagePair(source="en", target="de", target_prefix=(7, 8))
    newer = dataclasses.replace(model.manifest, version="8", language_pairs=(pair,))
    translator.catalogue.add(with_manifest(model, newer))
    split = TrafficSplit.of({"7": 90, "8": 10})  # the table knows the main version alone
    translator.catalogue.split("echo", split)
    keys = [f"key {number}" for number in range(50)]
    for key in keys:
        with await translator.accept(dataclasses.replace(request("One dog."), traffic_key=key)) as job:
            await job.finish()

    prefixes = [options.forced_prefix for options in engine.options]
    assert prefixes == [(7, 8) if split.choose("echo", key) == "8" else () for key in keys]
    assert set(prefixes) == {(), (7, 8)}


async def test_a_model_that_is_loaded_for_a_request_decides_about_it(translator: Translator, model: Model) -> None:
    pair = LanguagePair(source="en", target="de", source_prefix=(5, 6))
    offered = with_weights(model)
    loaded = with_manifest(model, dataclasses.replace(offered.manifest, language_pairs=(pair,)))

    class Loading(OnDemand):
        def __init__(self) -> None:
            """It needs no folder."""

        async def prove(self, name: str) -> None:
            assert name == "echo"

        async def load(self, name: str) -> Model:
            assert name == "echo"
            return loaded

    translator.catalogue = Catalogue(CatalogueMetrics(CollectorRegistry()), (), Loading())
    translator.catalogue.offer(ServedModel(manifest=offered.manifest, variant=model.variant, metrics=model.metrics))
    for _ in range(2):  # by the table from before it was loaded, and by one that knows it
        with await translator.accept(request("One dog.")) as job:
            assert job.routes[0][0].pair == pair
            assert job.answers[0].split.sentences[0].source_ids == model.tokenizer.encode("One dog.", (5, 6))


async def test_routes_follow_the_models_that_are_served(translator: Translator, model: Model) -> None:
    asked = dataclasses.replace(request("One dog."), source_language_code="fr")
    with pytest.raises(InvalidRequest, match="source_language_code: must be one of en for this target, not fr"):
        await translator.accept(asked)
    translator.catalogue.put(of_pairs(model, "frde", "fr-de"))
    with await translator.accept(asked) as job:
        assert job.routes[0][0].model.manifest.name == "frde"
    translator.catalogue.put(of_pairs(model, "frde", "it-de"))
    with pytest.raises(InvalidRequest, match="source_language_code: for this target must be one of en, it, not fr"):
        await translator.accept(asked)


async def test_the_table_is_made_once_and_keeps_no_model_that_is_replaced(translator: Translator, model: Model) -> None:
    translator.catalogue.put(of_pairs(model, "frde", "fr-de"))
    tables = []
    for _ in range(2):
        with await translator.accept(request("One dog.", model="frde")):
            tables.append(translator._table())
    old = weakref.ref(translator.catalogue.loaded("frde")[0][0].supervisor)
    translator.catalogue.put(of_pairs(model, "frde", "fr-de"))
    await asyncio.gather(*translator.catalogue._retired._unloading)

    assert old() is None
    assert tables[0] is tables[1]
    assert translator._table() is not tables[0]


def chain(translator: Translator, model: Model) -> tuple[EchoEngine, EchoEngine]:
    """Has a model into English in front of the echo, which are joined by a pivot; returns both engines."""
    pair = LanguagePair(source="fr", target="en")
    manifest = dataclasses.replace(model.manifest, name="fren", language_pairs=(pair,))
    engine = EchoEngine()
    translator.catalogue.put(
        dataclasses.replace(model, manifest=manifest, engine=engine, supervisor=idle_supervisor(manifest))
    )
    translator.pivots = ["en"]
    assert isinstance(model.engine, EchoEngine)
    return engine, model.engine


async def test_both_legs_are_charged_and_both_models_lent_until_the_end(
    translator: Translator, model: Model, metrics: Metrics
) -> None:
    engines = chain(translator, model)
    bucket = TokenBucket(rate=0.001, burst=1000.0)
    asked = dataclasses.replace(of_tenant(bucket, "One dog."), source_language_code="fr")
    with await translator.accept(asked) as job:
        translator.catalogue.remove("fren")
        await job.finish()
        (sentence,) = job.answers[0].split.sentences
        assert engines[0].refuses is None  # it has not been stopped

    cost = metrics.registry.get_sample_value("babelserve_tenant_cost_seconds_total", {"tenant": "billing"})
    assert cost == 2 * 4.0 * sentence.num_tokens
    assert [len(engine.futures) for engine in engines] == [1, 1]
    assert [leg.model.manifest.name for leg in job.routes[0]] == ["fren", "echo"]


async def test_a_second_leg_without_room_refuses_at_admission(translator: Translator, model: Model) -> None:
    engines = chain(translator, model)
    engines[1].refuses = Overloaded("full", "tokens")

    with pytest.raises(Overloaded):
        await translator.accept(dataclasses.replace(request("One dog."), source_language_code="fr"))

    assert engines[0].futures == []


async def test_a_text_in_a_language_that_is_not_served_fails_alone(translator: Translator, model: Model) -> None:
    chain(translator, model)

    class Told(LanguageDetection):
        is_available = True

        async def detect(self, texts: Any, codes: Any, mime_type: str = "", deadline: float = 0.0) -> Any:
            return [InvalidRequest("contents[0]", "detected language es"), DetectedLanguage("fr", 0.5)]

    translator.detection = Told(translator.memory, Splitter())
    with await translator.accept(request("x " * MAX_TEXT_BYTES, "One dog.")) as job:
        await job.finish()

    refused, whole = job.answers
    assert (str(refused.error), refused.legs) == ("contents[0]: detected language es", ())
    assert (whole.text(0), whole.detected) == ("One dog.", ("fr", 0.5))
