"""What most tests of batches and lanes begin with."""

import pytest

from server.engine.batch import Batch
from tests.server.engine.parts import Parts


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def batch(parts: Parts) -> Batch:
    return parts.open_batch()
