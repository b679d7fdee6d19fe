"""An engine over a fake network, whose lanes are stepped by hand or run on their own threads."""

import dataclasses
import math
from concurrent.futures import Future

from prometheus_client import CollectorRegistry

from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.cores import Cores
from server.engine.engine import Engine
from server.telemetry.metrics import Metrics
from tests.fakes import EOS, CountingRunner, FakeClock, engine_limits
from tests.server.engine.parts import GREEDY


@dataclasses.dataclass
class Bench:
    """An engine whose lanes are stepped by hand."""

    engine: Engine
    runner: CountingRunner
    clock: FakeClock
    registry: CollectorRegistry

    def submit(
        self, *counts: int, options: DecodingOptions = GREEDY, deadline: float = math.inf
    ) -> list[Future[Result]]:
        return self.engine.submit([(count, 50, EOS) for count in counts], options, deadline)

    def step(self, times: int = 1, lane: int = 0) -> None:
        for _ in range(times):
            self.engine.lanes[lane].step()

    def sample(self, name: str, **labels: str) -> float:
        value = self.registry.get_sample_value(f"babelserve_{name}", {"model": "counting", "version": "1", **labels})
        assert value is not None
        return value


def new_bench(
    manifest: Manifest,
    num_lanes: int = 1,
    max_rows: int = 8,
    max_waiting_sentences: int = 100,
    cores: Cores | None = None,
) -> Bench:
    runner, clock, registry = CountingRunner(), FakeClock(), CollectorRegistry()
    engine = Engine(
        runner,
        manifest,
        Metrics(registry).of_model("counting", "1"),
        engine_limits(num_lanes, max_rows, max_waiting_sentences),
        clock,
        cores,
    )
    return Bench(engine=engine, runner=runner, clock=clock, registry=registry)
