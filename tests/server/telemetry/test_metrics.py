import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from server.errors import Code
from server.telemetry.metrics import Metrics
from server.telemetry.model_metrics import EngineLoad


def test_names_follow_the_rules_of_prometheus(metrics: Metrics) -> None:
    names = {family.name for family in metrics.registry.collect()}
    own = {name for name in names if not name.startswith(("process_", "python_"))}

    assert all(re.fullmatch(r"babelserve_[a-z0-9_]+", name) for name in own)
    assert "process_resident_memory_bytes" in names
    assert "_created" not in generate_latest(metrics.registry).decode()


def test_closed_label_sets_are_there_from_the_start(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value

    for method in ("Translate", "TranslateStream", "ListModels", "other"):
        for code in Code:
            assert value("babelserve_requests_total", {"method": method, "code": code.name}) == 0


def test_a_models_series_are_there_once_it_is_known(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value

    assert value("babelserve_sentences_total", {"model": "m", "outcome": "ok"}) is None
    metrics.of_model("m")

    for outcome in ("ok", "cancelled", "deadline", "error"):
        assert value("babelserve_sentences_total", {"model": "m", "outcome": outcome}) == 0
    for reason in ("sentences", "tokens", "splitting"):
        assert value("babelserve_queue_rejected_total", {"model": "m", "reason": reason}) == 0
    for result in ("hit", "joined", "miss"):
        assert value("babelserve_sentence_cache_total", {"model": "m", "result": result}) == 0
    assert value("babelserve_queue_depth", {"model": "m"}) is None  # before there is an engine


def test_an_engine_is_asked_for_its_load_while_it_is_watched(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value
    loads = [EngineLoad(1, 2, 3, 4, 5), EngineLoad(10, 20, 30, 40, 50)]
    ends = [metrics.of_model("m").watch(lambda load=load: load) for load in loads]  # type: ignore[misc]
    names = ("queue_depth", "queue_tokens", "batch_slots", "batch_slots_used", "kv_cache_bytes")

    assert [value(f"babelserve_{name}", {"model": "m"}) for name in names] == [11, 22, 33, 44, 55]
    for end in (ends[0], ends[0], ends[1]):
        end()
    assert value("babelserve_queue_depth", {"model": "m"}) is None


def test_a_call_is_counted_at_its_start_and_its_end(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value

    end = metrics.start_request("no such method")
    assert value("babelserve_requests_in_flight", {"method": "other"}) == 1
    end(Code.UNIMPLEMENTED, 0.25)

    assert value("babelserve_requests_in_flight", {"method": "other"}) == 0
    assert value("babelserve_requests_total", {"method": "other", "code": "UNIMPLEMENTED"}) == 1
    assert value("babelserve_request_duration_seconds_sum", {"method": "other"}) == 0.25


def test_build_and_model_are_told(metrics: Metrics) -> None:
    metrics.set_build_info(version="1.2", variant="cpu-fp32", device="cpu")
    metrics.set_model_info(model="en-de", version="3", sha256="abc")

    page = generate_latest(metrics.registry).decode()
    assert 'babelserve_build_info{device="cpu"' in page
    assert 'babelserve_model_info{model="en-de",sha256="abc",version="3"} 1.0' in page


def test_two_sets_need_two_registries() -> None:
    registry = CollectorRegistry()
    Metrics(registry)

    with pytest.raises(ValueError, match="Duplicated"):
        Metrics(registry)
