import asyncio
import contextlib
import dataclasses
import threading

import pytest
from prometheus_client import CollectorRegistry

from server.bundle.manifest import Manifest
from server.errors import ModelNotFound, NotServing
from server.models.catalogue import Catalogue
from server.models.loading import needed_bytes
from server.models.model import Model, ServedModel
from server.models.traffic_split import TrafficSplit
from server.telemetry.catalogue_metrics import CatalogueMetrics
from server.telemetry.metrics import Metrics
from tests.server.echo_engine import EchoEngine, catalogue_of, idle_supervisor, with_weights

SECONDS = 20


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


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


def named(model: Model, name: str, version: str = "1", engine: EchoEngine | None = None) -> Model:
    """The model by another name, with an engine of its own."""
    manifest = dataclasses.replace(model.manifest, name=name, version=version)
    return dataclasses.replace(
        model, manifest=manifest, engine=engine or EchoEngine(), supervisor=idle_supervisor(manifest)
    )


def names(catalogue: Catalogue) -> list[str]:
    return [each.manifest.name for each in catalogue.models]


async def wait_for_stop(engine: SlowToStop) -> None:
    assert await asyncio.to_thread(engine.stopped.wait, SECONDS)


async def test_models_follow_by_name_those_that_the_operator_puts_first(model: Model) -> None:
    models = [named(model, name) for name in ("c", "a", "d", "b")]

    assert names(catalogue_of(*models)) == ["a", "b", "c", "d"]
    assert names(catalogue_of(*models, preferred=["d", "b"])) == ["d", "b", "a", "c"]


async def test_a_catalogue_without_models_serves_nothing(catalogue: Catalogue) -> None:
    assert not catalogue.is_open
    with pytest.raises(NotServing):
        names(catalogue)
    with pytest.raises(ModelNotFound):
        await catalogue.borrow("a")


async def test_a_request_keeps_its_version_and_the_last_one_unloads_it(
    catalogue: Catalogue, model: Model, registry: CollectorRegistry
) -> None:
    engine = SlowToStop()
    catalogue.put(named(model, "a", "1", engine))
    with await catalogue.borrow("a") as old:
        with await catalogue.borrow("a") as same:
            catalogue.put(named(model, "a", "2"))
            with await catalogue.borrow("a") as new:
                versions = [each.manifest.version for each in (old, same, new)]
        assert not engine.stopped.is_set()
        assert registry.get_sample_value("babelserve_models", {"state": "retired"}) == 1
    await wait_for_stop(engine)

    assert versions == ["1", "1", "2"]
    await asyncio.gather(*catalogue._unloading)
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
        await catalogue.borrow("a")


async def test_versions_share_a_models_requests_by_their_keys(
    catalogue: Catalogue, model: Model, registry: CollectorRegistry
) -> None:
    def percents() -> list[float | None]:
        labels = [{"model": "a", "version": version} for version in ("1", "2")]
        return [registry.get_sample_value("babelserve_model_traffic_percent", each) for each in labels]

    async def versions() -> list[str]:
        answers = []
        for number in range(200):
            with await catalogue.borrow("a", f"key {number}") as borrowed:
                answers.append(borrowed.manifest.version)
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
        seen.append(catalogue.history("a"))
    catalogue.add(named(model, "a", "5"))
    for percents in ({"4": 50, "5": 50}, {"5": 100}):
        catalogue.split("a", TrafficSplit.of(percents))
        seen.append(catalogue.history("a"))
    catalogue.forget_history("a")

    assert seen == [
        ("1",),
        ("1", "2"),
        ("1", "2", "3"),
        ("1", "2"),
        ("1", "2", "4"),
        ("1", "2", "4"),
        ("1", "2", "4", "5"),
    ]
    assert (catalogue.history("a"), catalogue.history("b")) == (("5",), ())


async def test_each_model_is_ready_by_itself_and_all_must_be_alive(catalogue: Catalogue, model: Model) -> None:
    for name in ("a", "b"):
        catalogue.put(named(model, name))
    assert catalogue.are_ready() == {"a": True, "b": True}
    assert catalogue.is_alive()

    with await catalogue.borrow("b") as lost:
        lost.supervisor._lose("for a test")

    assert catalogue.are_ready() == {"a": True, "b": False}
    assert not catalogue.is_alive()


async def test_stopping_ends_those_that_are_retired_too(catalogue: Catalogue, model: Model) -> None:
    engines = [SlowToStop(), SlowToStop()]
    catalogue.put(named(model, "a", engine=engines[0]))
    with await catalogue.borrow("a"):
        catalogue.put(named(model, "a", engine=engines[1]))
        catalogue.stop()

        assert all(engine.stopped.is_set() for engine in engines)


def test_metrics_and_manifest_are_known_of_each(model: Model, manifest: Manifest, metrics: Metrics) -> None:
    assert [each.manifest for each in catalogue_of(model).models] == [manifest]


class Shelf:
    """Models that are offered, and which were loaded in turn."""

    def __init__(self, model: Model, *names: str) -> None:
        self.models = {name: named(with_weights(model), name) for name in names}
        self.loaded: list[str] = []
        self.may_load = asyncio.Event()
        self.may_load.set()

    async def load(self, name: str) -> Model:
        self.loaded.append(name)
        await self.may_load.wait()
        if name == "broken":
            raise NotServing("it is broken")
        return named(self.models[name], name)

    def catalogue(self, registry: CollectorRegistry, num_fitting: int) -> Catalogue:
        (needed,) = {needed_bytes(each.manifest, each.variant) for each in self.models.values()}
        catalogue = Catalogue(CatalogueMetrics(registry), (), self.load, num_fitting * needed)
        for each in self.models.values():
            catalogue.offer(ServedModel(manifest=each.manifest, variant=each.variant, metrics=each.metrics))
        return catalogue


async def test_models_are_loaded_on_demand_and_the_least_recently_used_leave(
    model: Model, registry: CollectorRegistry
) -> None:
    shelf = Shelf(model, "a", "b", "c")
    catalogue = shelf.catalogue(registry, num_fitting=2)
    assert names(catalogue) == ["a", "b", "c"]

    for name in ("a", "b", "a", "c", "a", "b"):
        with await catalogue.borrow(name) as borrowed:
            assert borrowed.manifest.name == name

    assert shelf.loaded == ["a", "b", "c", "b"]  # c took b's place, and b c's
    assert catalogue.are_ready() == {"a": True, "b": True, "c": True}
    counts = [registry.get_sample_value("babelserve_models", {"state": state}) for state in ("loaded", "unloaded")]
    assert counts == [2, 1]
    evicted = {"model": "c", "reason": "evicted"}
    assert registry.get_sample_value("babelserve_model_unloads_total", evicted) == 1
    assert names(catalogue) == ["a", "b", "c"]
    await asyncio.to_thread(catalogue.stop)


async def test_a_model_in_use_leaves_when_its_last_request_has_ended(model: Model, registry: CollectorRegistry) -> None:
    shelf = Shelf(model, "a", "b")
    catalogue = shelf.catalogue(registry, num_fitting=1)
    with await catalogue.borrow("a"):
        waiting = asyncio.create_task(catalogue.borrow("b"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert shelf.loaded == ["a"]
    with await waiting as borrowed:
        assert borrowed.manifest.name == "b"


async def test_models_that_take_turns_in_the_memory_for_one_are_borrowed_before_they_leave(
    model: Model, registry: CollectorRegistry
) -> None:
    shelf = Shelf(model, "a", "b")
    catalogue = shelf.catalogue(registry, num_fitting=1)

    async def use(name: str) -> None:
        with await catalogue.borrow(name):
            await asyncio.sleep(0)

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*map(use, "ababab"))

    assert shelf.loaded == ["a", "b"]


async def test_whoever_waits_for_a_model_has_it_loaded_once_and_may_leave(
    model: Model, registry: CollectorRegistry
) -> None:
    shelf = Shelf(model, "a")
    catalogue = shelf.catalogue(registry, num_fitting=1)
    shelf.may_load.clear()
    first, second, third = (asyncio.create_task(catalogue.borrow("a")) for _ in range(3))
    await asyncio.sleep(0)
    first.cancel()
    shelf.may_load.set()

    for each in (second, third):
        with await each as borrowed:
            assert borrowed.manifest.name == "a"
    assert shelf.loaded == ["a"]


async def test_a_model_that_cannot_be_loaded_is_told_to_everybody_who_waits_and_tried_again(
    model: Model, registry: CollectorRegistry
) -> None:
    shelf = Shelf(model, "broken")
    catalogue = shelf.catalogue(registry, num_fitting=1)

    for _ in range(2):
        found = await asyncio.gather(*(catalogue.borrow("broken") for _ in range(2)), return_exceptions=True)
        assert [str(each) for each in found] == ["it is broken"] * 2
    assert shelf.loaded == ["broken"] * 2


async def test_models_that_are_used_together_are_loaded_so_that_none_waits_while_another_is_lent(
    model: Model, registry: CollectorRegistry
) -> None:
    catalogue = Shelf(model, "a", "b", "c").catalogue(registry, num_fitting=2)
    for pair in ("ab", "bc", "ca"):
        await catalogue.load_together(pair)

        assert {name for name in "abc" if catalogue.loaded(name)[0]} == set(pair)


async def test_models_that_do_not_fit_together_are_refused_at_once(model: Model, registry: CollectorRegistry) -> None:
    shelf = Shelf(model, "a", "b", "c")
    with pytest.raises(NotServing, match="models a, b, c do not fit into the memory for models together"):
        await shelf.catalogue(registry, num_fitting=2).load_together("abc")

    assert shelf.loaded == []


async def test_pairs_that_take_turns_in_the_memory_for_one_do_not_wait_for_each_other(
    model: Model, registry: CollectorRegistry
) -> None:
    catalogue = Shelf(model, "a", "b", "c", "d").catalogue(registry, num_fitting=2)
    num_used = 0

    async def use(names: str) -> None:
        nonlocal num_used
        if len(names) > 1:
            await catalogue.load_together(names)
        with contextlib.ExitStack() as held:
            for name in names:
                held.enter_context(await catalogue.borrow(name))
            await asyncio.sleep(0)
        num_used += 1

    wanted = ("ab", "cd", "c", "ac", "a", "bd", "d") * 3
    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*map(use, wanted))

    assert num_used == len(wanted)
