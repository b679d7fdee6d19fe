import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from server.errors import Code
from server.telemetry.metrics import Metrics


def test_names_follow_the_rules_of_prometheus(metrics: Metrics) -> None:
    names = {family.name for family in metrics.registry.collect()}
    own = {name for name in names if not name.startswith(("process_", "python_"))}

    assert all(re.fullmatch(r"babelserve_[a-z0-9_]+", name) for name in own)
    assert "process_resident_memory_bytes" in names
    assert "_created" not in generate_latest(metrics.registry).decode()


def test_closed_label_sets_are_there_from_the_start(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value

    for method in ("Translate", "TranslateStream", "Score", "ListModels", "other"):
        for code in Code:
            assert value("babelserve_requests_total", {"method": method, "code": code.name}) == 0


def test_a_call_is_counted_at_its_start_and_its_end(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value

    end = metrics.start_request("no such method")
    assert value("babelserve_requests_in_flight", {"method": "other"}) == 1
    end(Code.UNIMPLEMENTED, 0.25, None)

    assert value("babelserve_requests_in_flight", {"method": "other"}) == 0
    assert value("babelserve_requests_total", {"method": "other", "code": "UNIMPLEMENTED"}) == 1
    assert value("babelserve_request_duration_seconds_sum", {"method": "other"}) == 0.25


def test_goodput_is_counted_by_known_methods(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value

    metrics.count_goodput("Translate", 12)
    metrics.count_goodput("no such method", 0)

    assert value("babelserve_goodput_requests_total", {"method": "Translate"}) == 1
    assert value("babelserve_goodput_requests_total", {"method": "other"}) == 1
    assert value("babelserve_goodput_tokens_total") == 12


def test_a_recorded_trace_is_an_exemplar_of_its_bucket(metrics: Metrics) -> None:
    metrics.start_request("Translate")(Code.OK, 0.15, "0af7651916cd43dd8448eb211c80319c")
    metrics.start_request("Translate")(Code.OK, 0.5, None)

    page: bytes = openmetrics.generate_latest(metrics.registry)  # type: ignore[no-untyped-call]
    lines = page.decode().splitlines()
    (line,) = [line for line in lines if "trace_id" in line]
    assert line.startswith('babelserve_request_duration_seconds_bucket{le="0.2",method="Translate"} 1.0 # ')
    assert '{trace_id="0af7651916cd43dd8448eb211c80319c"} 0.15' in line
    assert "trace_id" not in generate_latest(metrics.registry).decode()


def test_no_name_that_a_client_chooses_makes_a_series(metrics: Metrics) -> None:
    def num_series() -> int:
        return sum(len(family.samples) for family in metrics.registry.collect())

    before = num_series()
    for number in range(10_000):
        metrics.start_request(f"Method{number}")(Code.UNIMPLEMENTED, 0.1, f"{number:032x}")
        metrics.count_goodput(f"Method{number}", number)

    assert num_series() == before


def test_the_build_is_told(metrics: Metrics) -> None:
    metrics.set_build_info(version="1.2", variant="cpu-fp32", device="cpu")

    page = generate_latest(metrics.registry).decode()
    assert 'babelserve_build_info{device="cpu"' in page


def test_two_sets_need_two_registries() -> None:
    registry = CollectorRegistry()
    Metrics(registry)

    with pytest.raises(ValueError, match="Duplicated"):
        Metrics(registry)
