import logging
from pathlib import Path

import pytest

from server.models.catalogue import Catalogue
from server.models.loading import needed_bytes
from server.models.model import Model
from server.models.model_memory import ModelMemory
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.translation.memory import MemoryBudget
from tests.server.echo_engine import with_weights
from tests.server.models.catalogued import named

MIB = 1 << 20


def most(model: Model) -> int:
    return needed_bytes(model.manifest, model.variant) + model.growth_bytes


@pytest.fixture
def catalogue(model: Model, metrics: Metrics) -> Catalogue:
    catalogue = Catalogue(metrics.catalogue)
    catalogue.put(named(with_weights(model), "first"))
    return catalogue


async def test_memory_is_left_to_models_that_come_and_given_back_when_they_go(
    model: Model, catalogue: Catalogue
) -> None:
    memory = MemoryBudget(1000 * MIB)
    of_models = ModelMemory(catalogue, Settings(models=Path("models")), memory.reserve)
    catalogue.put(named(with_weights(model), "before"))
    assert memory.max_bytes == 1000 * MIB
    of_models.follow()

    left = []
    for name, version in (("first", "2"), ("new", "1"), ("new", "2")):  # versions that replace others take nothing
        catalogue.put(named(with_weights(model), name, version))
        left.append(memory.max_bytes)
    assert of_models.fits(named(with_weights(model), "new", "3"))
    left.append(memory.max_bytes)
    catalogue.remove("new")
    left.append(memory.max_bytes)
    catalogue.remove("before")
    catalogue.remove("first")

    one = most(named(with_weights(model), "new"))
    assert left == [1000 * MIB - number * one for number in (0, 1, 1, 1, 0)]
    assert memory.max_bytes == 1000 * MIB
    assert one == 10 * MIB


async def test_requests_keep_the_least_that_they_need_and_the_operator_is_told_once(
    model: Model, catalogue: Catalogue, caplog: pytest.LogCaptureFixture
) -> None:
    memory = MemoryBudget(32 * MIB + most(named(with_weights(model), "new")))
    of_models = ModelMemory(catalogue, Settings(models=Path("models")), memory.reserve)
    of_models.follow()
    with caplog.at_level(logging.WARNING):
        for name in ("second", "third", "fourth"):
            catalogue.put(named(with_weights(model), name))
            assert memory.max_bytes == 32 * MIB
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["models"]
    catalogue.remove("third")
    catalogue.remove("fourth")

    assert not of_models.fits(named(with_weights(model), "second", "2"))
    assert memory.max_bytes == 32 * MIB
    catalogue.remove("second")
    assert memory.max_bytes > 32 * MIB
