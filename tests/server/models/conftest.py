from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry

from server.bundle.manifest import Manifest
from tests.server.models.watched import Watched, watching


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def watch(manifest: Manifest) -> Iterator[Callable[..., Watched]]:
    """Starts engines, which end with the test."""
    with watching(manifest) as start:
        yield start
