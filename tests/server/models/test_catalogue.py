import asyncio
import contextlib
import math
import threading

import pytest
from prometheus_client import CollectorRegistry

from server.bundle.manifest import Manifest
from server.errors import ModelNotFound, NotServing
from server.models.catalogue import Catalogue
from server.models.model import Model
from server.models.traffic_split import TrafficSplit
from server.telemetry.catalogue_metrics import CatalogueMetrics
from tests.server.echo_engine import EchoEngine, catalogue_of
from tests.server.models.catalogued import borrowed, named, names

SECONDS = 100.0


@pytest.fixture
def catalogue(registry: CollectorRegistry) -> Catalogue:
    return Catalogue(CatalogueMetrics(registry))


class SlowToStop(EchoEngine):
    """Tells when it is stopped, on whatever thread."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.stopped.set()


async def wait_for_stop(engine: SlowToStop) -> None:
    assert await asyncio.to_thread(engine.stopped.wait, SECONDS)


async def test_models_follow_by_name_those_that_the_operator_puts_first(model: Model) -> None:
    models = [named(model, name) for name in ("c", "a", "d", "b")]

    assert names(catalogue_of(*models)) == ["a", "b", "c", "d"]
    assert names(catalogue_of(*models, preferred=["d", "b"])) == ["d", "b", "a", "c"]


async def test_the_manifests_are_the_same_until_anything_changes(catalogue: Catalogue, model: Model) -> None:
    with pytest.raises(NotServing, match="loading"):
        _ = catalogue.manifests
    catalogue.put(named(model, "b"))
    catalogue.put(named(model, "a"))
    first = catalogue.manifests
    assert catalogue.manifests is first
    assert [each.name for each in first] == ["a", "b"]

    catalogue.put(named(model, "b", "2"))
    assert [each.version for each in catalogue.manifests] == ["1", "2"]
    catalogue.remove("a")
    catalogue.remove("b")
    with pytest.raises(NotServing, match="no model is served"):
        _ = catalogue.manifests


async def test_a_catalogue_without_models_serves_nothing(catalogue: Catalogue) -> None:
    assert not catalogue.is_open
    with pytest.raises(NotServing):
        names(catalogue)
    with pytest.raises(ModelNotFound):
        await catalogue.borrow(["a"], "", math.inf, contextlib.ExitStack())


async def test_a_request_keeps_its_version_and_the_last_one_unloads_it(
    catalogue: Catalogue, model: Model, registry: CollectorRegistry
) -> None:
    engine = SlowToStop()
    catalogue.put(named(model, "a", "1", engine))
    async with borrowed(catalogue, "a") as old:
        async with borrowed(catalogue, "a") as same:
            catalogue.put(named(model, "a", "2"))
            async with borrowed(catalogue, "a") as new:
                versions = [each.manifest.version for each in (old, same, new)]
        assert not engine.stopped.is_set()
        assert registry.get_sample_value("babelserve_models", {"state": "retired"}) == 1
    await wait_for_stop(engine)

    assert versions == ["1", "1", "2"]
    await asyncio.gather(*catalogue._retired._unloading)
    labels = {"model": "a", "reason": "replaced"}
    assert registry.get_sample_value("babelserve_models", {"state": "retired"}) == 0
    assert registry.get_sample_value("babelserve_model_unloads_total", labels) == 1


async def test_a_model_that_is_removed_is_not_found_any_more(catalogue: Catalogue, model: Model) -> None:
    engine = SlowToStop()
    catalogue.put(named(model, "a", engine=engine))
    catalogue.put(named(model, "b"))
    catalogue.remove("a")
    await wait_for_stop(engine)

    assert names(catalogue) == ["b"]
    with pytest.raises(ModelNotFound):
        await catalogue.borrow(["a"], "", math.inf, contextlib.ExitStack())


async def test_versions_share_a_models_requests_by_their_keys(
    catalogue: Catalogue, model: Model, registry: CollectorRegistry
) -> None:
    def percents() -> list[float | None]:
        labels = [{"model": "a", "version": version} for version in ("1", "2")]
        return [registry.get_sample_value("babelserve_model_traffic_percent", each) for each in labels]

    async def versions() -> list[str]:
        answers = []
        for number in range(200):
            async with borrowed(catalogue, "a", f"key {number}") as found:
                answers.append(found.manifest.version)
        return answers

    engine = SlowToStop()
    catalogue.put(named(model, "a", "1", engine))
    catalogue.add(named(model, "a", "2"))
    before = (await versions(), percents())
    catalogue.split("a", TrafficSplit.of({"1": 80, "2": 20}))
    shared = [await versions(), await versions()]
    assert (percents(), catalogue.models[0].manifest.version) == ([80, 20], "1")
    catalogue.split("a", TrafficSplit.of({"2": 100}))
    with pytest.raises(AssertionError):
        catalogue.drop("a", "2")
    gone = catalogue.drop("a", "1")
    await asyncio.wait_for(gone.wait(), SECONDS)

    assert before == (["1"] * 200, [100, 0])
    assert shared[0] == shared[1]
    assert 20 <= shared[0].count("2") <= 60
    assert (set(await versions()), percents(), engine.stopped.is_set()) == ({"2"}, [None, 100], True)
    assert registry.get_sample_value("babelserve_models", {"state": "loaded"}) == 1


async def test_all_versions_are_replaced_or_removed_at_once(catalogue: Catalogue, model: Model) -> None:
    engines = [SlowToStop() for _ in range(3)]
    catalogue.put(named(model, "a", "1", engines[0]))
    catalogue.add(named(model, "a", "2", engines[1]))
    catalogue.put(named(model, "a", "3", engines[2]))
    for engine in engines[:2]:
        await wait_for_stop(engine)
    models, split = catalogue.loaded("a")
    assert [each.manifest.version for each in models] == ["3"]
    assert split == TrafficSplit.of({"3": 100})
    catalogue.remove("a")
    await wait_for_stop(engines[2])

    assert catalogue.loaded("a") == ([], None)


async def test_versions_that_had_all_requests_are_known_and_forgotten_by_who_returns(
    catalogue: Catalogue, model: Model
) -> None:
    seen = []
    for version in ("1", "2", "3", "2", "4"):
        catalogue.put(named(model, "a", version))
        seen.append(catalogue.history.of("a"))
    catalogue.add(named(model, "a", "5"))
    for percents in ({"4": 50, "5": 50}, {"5": 100}):
        catalogue.split("a", TrafficSplit.of(percents))
        seen.append(catalogue.history.of("a"))
    catalogue.history.keep_last("a")

    assert seen == [
        ("1",),
        ("1", "2"),
        ("1", "2", "3"),
        ("1", "2"),
        ("1", "2", "4"),
        ("1", "2", "4"),
        ("1", "2", "4", "5"),
    ]
    assert (catalogue.history.of("a"), catalogue.history.of("b")) == (("5",), ())


async def test_each_model_is_ready_by_itself_and_all_must_be_alive(catalogue: Catalogue, model: Model) -> None:
    for name in ("a", "b"):
        catalogue.put(named(model, name))
    assert catalogue.are_ready() == {"a": True, "b": True}
    assert catalogue.is_alive()

    async with borrowed(catalogue, "b") as lost:
        lost.supervisor._lose("for a test")

    assert catalogue.are_ready() == {"a": True, "b": False}
    assert not catalogue.is_alive()


async def test_stopping_ends_those_that_are_retired_too(catalogue: Catalogue, model: Model) -> None:
    engines = [SlowToStop(), SlowToStop()]
    catalogue.put(named(model, "a", engine=engines[0]))
    async with borrowed(catalogue, "a"):
        catalogue.put(named(model, "a", engine=engines[1]))
        catalogue.stop()

        assert all(engine.stopped.is_set() for engine in engines)


def test_metrics_and_manifest_are_known_of_each(model: Model, manifest: Manifest) -> None:
    assert [(each.manifest, each.metrics) for each in catalogue_of(model).models] == [(manifest, model.metrics)]
