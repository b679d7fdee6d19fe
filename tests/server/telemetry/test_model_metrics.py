from dataclasses import replace

import pytest

from server.engine.lane import LaneState
from server.telemetry.metrics import Metrics
from server.telemetry.model_metrics import CACHE_RESULTS, CANARY_RESULTS, LANE_STATES, OUTCOMES, EngineLoad


def count(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"babelserve_{name}", {"model": "m", "version": "1", **labels})


def test_a_models_series_are_there_once_it_is_known(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value

    assert value("babelserve_sentences_total", {"model": "m", "version": "1", "outcome": "ok"}) is None
    metrics.of_model("m", "1")

    for outcome in ("ok", "cancelled", "deadline", "error"):
        assert value("babelserve_sentences_total", {"model": "m", "version": "1", "outcome": outcome}) == 0
    for result in ("hit", "joined", "miss"):
        assert value("babelserve_sentence_cache_total", {"model": "m", "version": "1", "result": result}) == 0
    assert value("babelserve_queue_depth", {"model": "m", "version": "1"}) is None  # before there is an engine


def test_an_engine_is_asked_for_its_load_while_it_is_watched(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value
    loads = [EngineLoad(1, 2, 3, 4, 5, 6, 7), EngineLoad(10, 20, 30, 40, 50, 60, 70)]
    ends = [metrics.of_model("m", "1").watch(lambda load=load: load) for load in loads]  # type: ignore[misc]
    names = ["queue_depth", "queue_tokens", "lane_rows", "lane_rows_used", "kv_cache_bytes"]
    names += ["queue_depth_limit", "queue_tokens_limit"]

    assert [value(f"babelserve_{name}", {"model": "m", "version": "1"}) for name in names] == [
        11,
        22,
        33,
        44,
        55,
        66,
        77,
    ]
    for end in (ends[0], ends[0], ends[1]):
        end()
    assert value("babelserve_queue_depth", {"model": "m", "version": "1"}) is None


def test_engines_of_several_models_are_told_apart(metrics: Metrics) -> None:
    end = metrics.of_model("m", "1").watch(lambda: EngineLoad(0, 0, 8, 1, 0, 0, 0))
    metrics.of_model("other", "1").watch(lambda: EngineLoad(0, 0, 8, 2, 0, 0, 0))

    def rows() -> list[float | None]:
        value = metrics.registry.get_sample_value
        return [value("babelserve_lane_rows_used", {"model": name, "version": "1"}) for name in ("m", "other")]

    assert rows() == [1, 2]
    end()
    assert rows() == [None, 2]


def test_an_engine_is_asked_anew_whenever_the_page_is_read(metrics: Metrics) -> None:
    waiting = 1
    metrics.of_model("m", "1").watch(lambda: EngineLoad(waiting, 0, 0, 0, 0, 0, 0))

    found = [count(metrics, "queue_depth")]
    waiting = 5
    found.append(count(metrics, "queue_depth"))

    assert found == [1, 5]


def test_what_is_counted_is_counted_under_its_label_alone(metrics: Metrics) -> None:
    model = metrics.of_model("m", "1")

    model.count_sentences("ok")
    model.count_sentences("cancelled", 3)
    model.count_cached("hit", 2)

    assert [count(metrics, "sentences_total", outcome=outcome) for outcome in OUTCOMES] == [1, 3, 0, 0, 0]
    assert [count(metrics, "sentence_cache_total", result=result) for result in CACHE_RESULTS] == [2, 0, 0]


def test_lanes_are_told_by_their_state(metrics: Metrics) -> None:
    model = metrics.of_model("m", "1")
    idle = EngineLoad(0, 0, 0, 0, 0, 0, 0)
    model.watch(lambda: replace(idle, serving_lanes=1, out_lanes=1))
    end = model.watch(lambda: replace(idle, serving_lanes=2, suspect_lanes=3))  # of an exchanged bundle, say

    found = [[count(metrics, "lanes", state=state) for state in LANE_STATES]]
    end()
    found.append([count(metrics, "lanes", state=state) for state in LANE_STATES])
    model.count_canary("wrong")

    assert {state.value for state in LaneState} == set(LANE_STATES)
    assert found == [[3, 3, 1], [1, 0, 1]]
    assert [count(metrics, "canaries_total", result=result) for result in CANARY_RESULTS] == [0, 1, 0]


def test_wasted_tokens_are_counted_by_outcome(metrics: Metrics) -> None:
    model = metrics.of_model("m", "1")

    model.count_wasted("cancelled", 7)
    model.count_wasted("deadline", 0)

    assert [count(metrics, "wasted_tokens_total", outcome=outcome) for outcome in OUTCOMES] == [0, 7, 0, 0, 0]


def test_a_forecast_is_compared_with_what_came(metrics: Metrics) -> None:
    metrics.of_model("m", "1").observe_queue_wait(predicted_seconds=0.5, real_seconds=1.0)

    assert count(metrics, "queue_wait_prediction_ratio_sum") == 2
    assert count(metrics, "queue_wait_prediction_ratio_bucket", le="1.5") == 0
    assert count(metrics, "queue_wait_prediction_ratio_bucket", le="2.0") == 1


def test_labels_outside_the_closed_sets_are_refused(metrics: Metrics) -> None:
    model = metrics.of_model("m", "1")

    with pytest.raises(KeyError):
        model.count_sentences("exploded")
    with pytest.raises(KeyError):
        model.count_cached("maybe", 1)
    with pytest.raises(KeyError):
        model.count_canary("perhaps")


def test_whoever_binds_a_model_counts_on_the_same_series(metrics: Metrics) -> None:
    for _ in range(2):
        metrics.of_model("m", "1").source_tokens_total.inc(5)
    metrics.of_model("other", "1").source_tokens_total.inc(1)

    assert count(metrics, "source_tokens_total") == 10


def test_versions_stay_on_the_page_until_others_have_come_unless_they_have_an_engine(metrics: Metrics) -> None:
    def versions() -> list[str]:
        known = range(1, 9)
        labels = [{"model": "m", "version": str(version)} for version in known]
        value = metrics.registry.get_sample_value
        return [each["version"] for each in labels if value("babelserve_length_ratio_count", each) is not None]

    metrics.of_model("other", "1")
    metrics.of_model("m", "1").watch(lambda: EngineLoad(0, 0, 0, 0, 0, 0, 0))
    for version in ("2", "3", "4"):
        metrics.of_model("m", version)
    found = [versions()]
    for version in ("5", "3", "6"):
        metrics.of_model("m", version)
        found.append(versions())

    assert found == [["1", "2", "3", "4"], ["1", "3", "4", "5"], ["1", "3", "4", "5"], ["1", "3", "5", "6"]]
    labels = {"model": "other", "version": "1"}
    assert metrics.registry.get_sample_value("babelserve_length_ratio_count", labels) == 0


def test_the_series_of_a_model_go_with_its_folder_and_with_its_last_engine(metrics: Metrics) -> None:
    def versions() -> set[str]:
        samples = (sample for family in metrics.registry.collect() for sample in family.samples)
        return {sample.labels["version"] for sample in samples if sample.labels.get("model") == "m"}

    unwatch = metrics.of_model("m", "1").watch(lambda: EngineLoad(*[0] * 7))
    metrics.of_model("m", "2")

    metrics.forget_model("m")
    assert versions() == {"1"}
    unwatch()
    assert versions() == set()
    metrics.of_model("m", "3")
    metrics.of_model("m", "4").watch(lambda: EngineLoad(*[0] * 7))()
    assert versions() == {"3", "4"}
