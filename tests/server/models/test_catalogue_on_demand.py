"""A catalogue whose models are loaded when they are borrowed."""

import asyncio
import contextlib
import math
import time

import pytest
from prometheus_client import CollectorRegistry

from server.errors import DeadlineExceeded, ModelNotFound, NotServing, PreconditionFailed
from server.models.catalogue import Catalogue
from server.models.loading import needed_bytes
from server.models.model import Model, ServedModel
from server.models.on_demand import OnDemand
from server.telemetry.catalogue_metrics import CatalogueMetrics
from tests.server.echo_engine import with_weights
from tests.server.models.catalogued import borrowed, named, names

SECONDS = 100.0


class Shelf(OnDemand):
    """Models that are offered, and which were loaded in turn. `x` is not good, and `y` cannot be loaded."""

    def __init__(self, model: Model, *names: str) -> None:
        self.models = {name: named(with_weights(model), name) for name in names}
        self.proved: list[str] = []
        self.loaded: list[str] = []
        self.may_load = asyncio.Event()
        self.may_load.set()

    async def prove(self, name: str) -> None:
        self.proved.append(name)
        if name == "x":
            raise NotServing("it is not good")

    async def load(self, name: str) -> Model:
        self.loaded.append(name)
        await self.may_load.wait()
        if name == "y":
            raise NotServing("it is broken")
        return named(self.models[name], name)

    def catalogue(self, registry: CollectorRegistry, num_fitting: int) -> Catalogue:
        (needed,) = {needed_bytes(each.manifest, each.variant) for each in self.models.values()}
        catalogue = Catalogue(CatalogueMetrics(registry), (), self, num_fitting * needed)
        for each in self.models.values():
            catalogue.offer(ServedModel(manifest=each.manifest, variant=each.variant, metrics=each.metrics))
        return catalogue


async def use(catalogue: Catalogue, names: str) -> list[str]:
    """Borrows models, each named by a letter, for a turn of the event loop; returns their names."""
    with contextlib.ExitStack() as held:
        models = await catalogue.borrow([*names], "", math.inf, held)
        await asyncio.sleep(0)
        return [each.manifest.name for each in models.values()]


async def test_models_are_loaded_on_demand_and_the_least_recently_used_leave(
    model: Model, registry: CollectorRegistry
) -> None:
    shelf = Shelf(model, "a", "b", "c")
    catalogue = shelf.catalogue(registry, num_fitting=2)
    assert names(catalogue) == ["a", "b", "c"]

    for name in ("a", "b", "a", "c", "a", "b"):
        async with borrowed(catalogue, name) as found:
            assert found.manifest.name == name

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
    async with borrowed(catalogue, "a"):
        waiting = asyncio.create_task(use(catalogue, "b"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert shelf.loaded == ["a"]

    assert await waiting == ["b"]


async def test_models_that_take_turns_in_the_memory_for_one_are_borrowed_before_they_leave(
    model: Model, registry: CollectorRegistry
) -> None:
    shelf = Shelf(model, "a", "b")
    catalogue = shelf.catalogue(registry, num_fitting=1)

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*(use(catalogue, name) for name in "ababab"))

    assert shelf.loaded == ["a", "b"]


async def test_whoever_waits_for_a_model_has_it_loaded_once_and_may_leave(
    model: Model, registry: CollectorRegistry
) -> None:
    shelf = Shelf(model, "a")
    catalogue = shelf.catalogue(registry, num_fitting=1)
    shelf.may_load.clear()
    first, second, third = (asyncio.create_task(use(catalogue, "a")) for _ in range(3))
    await asyncio.sleep(0)
    first.cancel()
    shelf.may_load.set()

    assert [await second, await third] == [["a"], ["a"]]
    assert shelf.loaded == ["a"]


async def test_a_model_that_cannot_be_loaded_is_told_to_everybody_who_waits_and_tried_again(
    model: Model, registry: CollectorRegistry
) -> None:
    shelf = Shelf(model, "y")
    catalogue = shelf.catalogue(registry, num_fitting=1)

    for _ in range(2):
        found = await asyncio.gather(*(use(catalogue, "y") for _ in range(2)), return_exceptions=True)
        assert [str(each) for each in found] == ["it is broken"] * 2
    assert shelf.loaded == ["y"] * 2


async def test_no_model_leaves_for_one_that_is_not_good(model: Model, registry: CollectorRegistry) -> None:
    shelf = Shelf(model, "a", "x")
    catalogue = shelf.catalogue(registry, num_fitting=1)

    for name in "axax":
        with contextlib.suppress(NotServing):
            await use(catalogue, name)

    assert (shelf.proved, shelf.loaded) == (["a", "x", "x"], ["a"])


async def test_other_models_are_loaded_while_one_is_proved(
    model: Model, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, may_end = Shelf(model, "a", "b"), asyncio.Event()

    async def prove(name: str) -> None:
        if name == "a":
            await may_end.wait()

    monkeypatch.setattr(shelf, "prove", prove)
    catalogue = shelf.catalogue(registry, num_fitting=1)
    waiting = asyncio.create_task(use(catalogue, "a"))

    async with asyncio.timeout(SECONDS):
        assert await use(catalogue, "b") == ["b"]
        may_end.set()
        assert await waiting == ["a"]


async def test_models_that_are_used_together_are_loaded_so_that_none_waits_while_another_is_lent(
    model: Model, registry: CollectorRegistry
) -> None:
    catalogue = Shelf(model, "a", "b", "c").catalogue(registry, num_fitting=2)
    for pair in ("ab", "bc", "ca"):
        assert await use(catalogue, pair) == [*pair]

        assert {name for name in "abc" if catalogue.loaded(name)[0]} == set(pair)


async def test_models_that_do_not_fit_together_are_refused_at_once(model: Model, registry: CollectorRegistry) -> None:
    shelf = Shelf(model, "a", "b", "c")
    with pytest.raises(PreconditionFailed, match="models a, b, c take 30 MiB together, --models-memory is 20"):
        await use(shelf.catalogue(registry, num_fitting=2), "abc")

    assert shelf.loaded == []


async def test_pairs_that_take_turns_in_the_memory_for_one_do_not_wait_for_each_other(
    model: Model, registry: CollectorRegistry
) -> None:
    catalogue = Shelf(model, "a", "b", "c", "d").catalogue(registry, num_fitting=2)
    wanted = ("ab", "cd", "c", "ac", "a", "bd", "d") * 3
    async with asyncio.timeout(SECONDS):
        used = await asyncio.gather(*(use(catalogue, names) for names in wanted))

    assert used == [[*names] for names in wanted]


async def test_a_model_that_is_not_loaded_in_time_is_given_up_and_its_place_left(
    model: Model, registry: CollectorRegistry
) -> None:
    shelf = Shelf(model, "a", "b")
    catalogue = shelf.catalogue(registry, num_fitting=2)
    shelf.may_load.clear()
    with contextlib.ExitStack() as held, pytest.raises(DeadlineExceeded, match="before model a, b was loaded"):
        await catalogue.borrow("ab", "", time.monotonic() + 0.01, held)
    shelf.may_load.set()

    assert await use(catalogue, "ab") == ["a", "b"]


async def test_what_is_in_memory_is_lent_however_late_it_is(model: Model, registry: CollectorRegistry) -> None:
    catalogue = Shelf(model, "a").catalogue(registry, num_fitting=1)
    assert await use(catalogue, "a") == ["a"]

    with contextlib.ExitStack() as held:
        assert [*await catalogue.borrow("a", "", time.monotonic() - 1.0, held)] == ["a"]


async def test_of_models_that_are_borrowed_together_none_may_be_gone(model: Model, registry: CollectorRegistry) -> None:
    catalogue = Shelf(model, "a", "b").catalogue(registry, num_fitting=2)
    catalogue.remove("b")

    with pytest.raises(ModelNotFound, match="model: b is not served here any more"):
        await use(catalogue, "ab")
