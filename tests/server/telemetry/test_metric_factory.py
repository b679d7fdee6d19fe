import pytest
from prometheus_client import CollectorRegistry

from server.telemetry.metric_factory import MetricFactory


def test_families_have_the_prefix_and_the_common_labels_ahead_of_their_own() -> None:
    registry = CollectorRegistry()
    new = MetricFactory(registry, "model")

    new.counter("calls", "Calls.", "code").labels("m", "OK").inc(2)
    new.gauge("rows", "Rows.", "lane").labels("m", "0").set(3)
    new.histogram("wait_seconds", "Wait.", (0.5, 1), "lane").labels("m", "0").observe(0.7)

    value = registry.get_sample_value
    assert value("babelserve_calls_total", {"model": "m", "code": "OK"}) == 2
    assert value("babelserve_rows", {"model": "m", "lane": "0"}) == 3
    buckets = [value("babelserve_wait_seconds_bucket", {"model": "m", "lane": "0", "le": le}) for le in ("0.5", "1.0")]
    assert buckets == [0, 1]


def test_a_name_is_given_once() -> None:
    registry = CollectorRegistry()
    MetricFactory(registry).gauge("rows", "Rows.")

    with pytest.raises(ValueError, match="babelserve_rows"):
        MetricFactory(registry, "model").gauge("rows", "Rows.")
