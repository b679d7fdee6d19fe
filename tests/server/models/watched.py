"""An engine that is watched look by look, on a clock of its own, and the faults that lanes can have."""

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from prometheus_client import CollectorRegistry

from server.bundle.manifest import Golden, GoldenOutput, Manifest
from server.decoding.result import Result
from server.engine.engine import Engine
from server.engine.lane import LaneState
from server.errors import Code, TranslationError
from server.models.golden_sentence import GoldenSentence
from server.models.supervisor import Supervisor
from server.network import DeviceLost, OutOfMemory
from server.telemetry.metrics import Metrics
from tests.fakes import EOS, CountingRunner, FakeClock, Spoil, engine_limits
from tests.server.engine.parts import GREEDY, tokens

GOLDEN = Golden(
    source_text="", source_ids=(4, 50, EOS), beam_size=2, outputs={"cpu-fp32": GoldenOutput(ids=tokens(4), score=0.0)}
)
MOST_SECONDS = 45.0  # of the fake clock: a canary of a busy engine comes within 30, and all else at once


@dataclass
class Watched:
    """An engine that is watched, look by look."""

    engine: Engine
    supervisor: Supervisor
    runner: CountingRunner
    clock: FakeClock
    registry: CollectorRegistry
    distrusted: list[bool]
    submitted: list[Future[Result]] = field(default_factory=list)

    def submit(self, *counts: int) -> list[Future[Result]]:
        futures = self.engine.submit([(count, 50, EOS) for count in counts], GREEDY)
        self.submitted += futures
        return futures

    def look_until(self, is_over: Callable[[], bool]) -> float:
        """Looks, at once when there is an alarm, until something is so; returns seconds of the fake clock."""
        started = self.clock.now
        while not is_over():
            if not self.engine.alarm.wait(0.03):
                self.clock.now += 0.5
                assert self.clock.now - started <= MOST_SECONDS
            self.engine.alarm.clear()
            self.supervisor.look()
        return self.clock.now - started

    def is_well(self) -> bool:
        return self.supervisor.is_ready() and all(lane.state is LaneState.SERVING for lane in self.engine.lanes)

    def codes(self) -> set[Code]:
        """Returns how the sentences ended that have been submitted; each must have."""
        errors = [future.exception(0) for future in self.submitted]
        assert all(error is None or isinstance(error, TranslationError) for error in errors)
        return {error.code if isinstance(error, TranslationError) else Code.OK for error in errors}

    def sample(self, name: str, **labels: str) -> float:
        value = self.registry.get_sample_value(f"babelserve_{name}", {"model": "m", "version": "1", **labels})
        assert value is not None
        return value


@contextmanager
def watching(manifest: Manifest) -> Iterator[Callable[..., Watched]]:
    """Starts engines, which end with the block."""
    all_watched: list[Watched] = []

    def start(num_lanes: int = 2, spoil: Spoil | None = None, num_models: int = 1) -> Watched:
        runner, clock, registry = CountingRunner(), FakeClock(), CollectorRegistry()
        runner.spoil = spoil or runner.spoil
        metrics = Metrics(registry).of_model("m", "1")
        engine = Engine(runner, manifest, metrics, engine_limits(num_lanes), clock)
        distrusted: list[bool] = []
        golden = GoldenSentence(dataclasses.replace(manifest, golden=GOLDEN), "cpu-fp32")
        supervisor = Supervisor(engine, golden, metrics, lambda: distrusted.append(True), clock, num_models)
        engine.start()
        all_watched.append(Watched(engine, supervisor, runner, clock, registry, distrusted))
        return all_watched[-1]

    yield start
    for watched in all_watched:
        watched.runner.may_step.set()
        watched.engine.stop()


def raising(error: BaseException) -> Spoil:
    def spoil(*_: Any) -> NoReturn:
        raise error

    return spoil


def make_nan(_: int, ids: Any, log_probs: Any) -> None:
    log_probs[:] = np.nan


def make_constant(_: int, ids: Any, log_probs: Any) -> None:
    ids[:] = np.arange(42, 42 + ids.shape[1])


def make_wrong(_: int, ids: Any, log_probs: Any) -> None:
    ids[ids != EOS] += 1


FAULTS: dict[str, tuple[Spoil, set[Code]]] = {  # each with what sentences may be told of it
    "raise": (raising(RuntimeError("broken")), {Code.INTERNAL}),
    "death": (raising(SystemExit("broken")), {Code.UNAVAILABLE}),
    "NaN": (make_nan, {Code.INTERNAL}),
    "no memory": (raising(OutOfMemory("CUDA failure 2: out of memory")), {Code.RESOURCE_EXHAUSTED}),
    "constant logits": (make_constant, {Code.UNAVAILABLE}),
    "wrong but finite": (make_wrong, {Code.UNAVAILABLE}),
    "lost device": (raising(DeviceLost("CUDA failure 700")), {Code.UNAVAILABLE}),
}
ENDS = {"lost device"}  # after which there is no canary


def once(spoil: Spoil) -> Spoil:
    left = [True]

    def spoil_once(number: int, ids: Any, log_probs: Any) -> None:
        if left:
            left.clear()
            spoil(number, ids, log_probs)

    return spoil_once


def on_first_decoder(spoil: Spoil) -> Spoil:
    def spoil_first(number: int, ids: Any, log_probs: Any) -> None:
        if number == 0:
            spoil(number, ids, log_probs)

    return spoil_first


def assert_rows_are_free(watched: Watched) -> None:
    """Looks until they are: a lane frees a sentence's rows just after it has answered it."""
    engine = watched.engine
    watched.look_until(lambda: not any(lane.num_rows for lane in engine.lanes) and not engine._dispatch._running_rows)
