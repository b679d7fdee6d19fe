"""That so many sentences wait as the table says, over a fake network; costs are not tested."""

import pytest
from prometheus_client import CollectorRegistry

from server.bundle.bundle import open_bundle
from server.engine.engine import Engine
from server.engine.limits import EngineLimits
from server.settings.settings import BUILTIN_BUNDLE
from server.telemetry.metrics import Metrics
from tests.bench.backlog import Backlog, plan_runs
from tests.bench.systems import NO_LIMIT, Settings
from tests.fakes import EOS, CountingRunner, lane_limits
from tests.samples import total

SETTINGS = Settings(system="ours", path="", precision="cpu-int8", workers=2, batch=4)
SOURCES = [(count, 50, EOS) for count in (3, 1, 2)]
ROWS = 8


def new_engine(registry: CollectorRegistry, max_waiting_sentences: int = NO_LIMIT) -> Engine:
    return Engine(
        CountingRunner(),
        open_bundle(BUILTIN_BUNDLE).manifest,
        Metrics(registry).of_model("builtin", "1"),
        EngineLimits(
            num_lanes=2,
            lane=lane_limits(max_rows=4),
            max_waiting_tokens=NO_LIMIT,
            max_waiting_sentences=max_waiting_sentences,
        ),
    )


@pytest.mark.parametrize(("num_per_request", "least", "most"), [(1, 20, 20), (20, 10, 30)])
def test_sentences_that_are_done_are_replaced(num_per_request: int, least: int, most: int) -> None:
    registry = CollectorRegistry()
    engine = new_engine(registry)
    backlog = Backlog(engine, SOURCES, num_rows=ROWS, num_waiting=20, num_per_request=num_per_request)
    backlog.fill()
    engine.start()

    backlog.wait(200)
    engine.stop()

    outcomes = [total(registry, "babelserve_sentences_total", outcome=outcome) for outcome in ("ok", "error")]
    assert backlog.num_finished == outcomes[0] >= 200
    # What was left when the engine stopped; those that its last step finished were not replaced.
    assert least - ROWS <= outcomes[1] - ROWS <= most
    assert backlog.num_refused == 0


def test_what_a_full_queue_refuses_is_counted() -> None:
    registry = CollectorRegistry()
    backlog = Backlog(new_engine(registry, 10), SOURCES, num_rows=ROWS, num_waiting=20, num_per_request=1)

    backlog.fill()

    assert backlog.num_refused == ROWS + 20 - 10
    assert total(registry, "babelserve_queue_depth") == 10


def test_all_runs_measure_the_same_whole_passes_over_the_text_after_the_rows_have_turned_over() -> None:
    runs = plan_runs(SETTINGS, num_sentences=300, num_tokens=9_000, quick=False)

    assert {(run.first, run.last) for run in runs} == {(2 * ROWS, 2 * ROWS + 3 * 300)}  # 27,000 tokens
    assert len({run.name for run in runs}) == len(runs) == 9
    assert all(run.settings == SETTINGS for run in runs)
    assert [run.num_waiting for run in runs if run.max_waiting_sentences < NO_LIMIT] == [10_000]
