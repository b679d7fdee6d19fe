"""What most tests of batches, lanes and engines begin with."""

from collections.abc import Callable, Iterator

import pytest

from server.bundle.manifest import Manifest
from server.engine.batch import Batch
from server.engine.lane import Lane
from tests.server.engine.bench import Bench, new_bench
from tests.server.engine.parts import Parts


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def batch(parts: Parts) -> Batch:
    return parts.open_batch()


@pytest.fixture
def lane(parts: Parts) -> Lane:
    return parts.open_lane()


@pytest.fixture
def bench(manifest: Manifest) -> Bench:
    return new_bench(manifest)


@pytest.fixture
def running(manifest: Manifest) -> Iterator[Callable[..., Bench]]:
    """Makes benches whose lanes run on their own threads."""
    benches: list[Bench] = []

    def start(num_lanes: int = 1, max_rows: int = 8, max_waiting_sentences: int = 100) -> Bench:
        benches.append(new_bench(manifest, num_lanes, max_rows, max_waiting_sentences))
        benches[-1].engine.start()
        return benches[-1]

    yield start
    for one in benches:
        one.runner.may_step.set()
        one.engine.stop()
