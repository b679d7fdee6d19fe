"""Models for the tests of the catalogue."""

import contextlib
import dataclasses
import math
from collections.abc import AsyncIterator

from server.models.catalogue import Catalogue
from server.models.model import Model
from tests.server.echo_engine import EchoEngine, idle_supervisor


def named(model: Model, name: str, version: str = "1", engine: EchoEngine | None = None) -> Model:
    """The model by another name, with an engine of its own."""
    manifest = dataclasses.replace(model.manifest, name=name, version=version)
    return dataclasses.replace(
        model, manifest=manifest, engine=engine or EchoEngine(), supervisor=idle_supervisor(manifest)
    )


def names(catalogue: Catalogue) -> list[str]:
    return [each.manifest.name for each in catalogue.models]


@contextlib.asynccontextmanager
async def borrowed(catalogue: Catalogue, name: str, key: str = "") -> AsyncIterator[Model]:
    """A model, as long as the block lasts, however long it takes to be loaded."""
    with contextlib.ExitStack() as held:
        yield (await catalogue.borrow([name], key, math.inf, held))[name]
