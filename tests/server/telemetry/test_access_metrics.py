import math

import pytest
from prometheus_client import CollectorRegistry

from server.errors import REJECT_REASONS, Code
from server.telemetry.access_metrics import AccessMetrics


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> AccessMetrics:
    return AccessMetrics(registry)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    found = registry.get_sample_value(f"babelserve_{name}", labels)
    assert found is not None
    return found


def test_without_a_certificate_no_alert_compares_its_end(metrics: AccessMetrics, registry: CollectorRegistry) -> None:
    assert math.isnan(value(registry, "tls_certificate_expiry_timestamp_seconds"))


def test_files_are_in_force_until_a_reload_fails(metrics: AccessMetrics, registry: CollectorRegistry) -> None:
    seen = [value(registry, "last_reload_successful", files="keys")]
    for is_successful in (False, True):
        metrics.count_reload("keys", is_successful=is_successful)
        seen.append(value(registry, "last_reload_successful", files="keys"))

    assert seen == [1, 0, 1]
    assert [value(registry, "reloads_total", files="keys", outcome=outcome) for outcome in ("ok", "failed")] == [1, 1]
    assert value(registry, "reloads_total", files="certificates", outcome="ok") == 0


def test_a_tenants_calls_are_counted_by_how_they_ended(metrics: AccessMetrics, registry: CollectorRegistry) -> None:
    metrics.add_tenants(["billing", "search"])

    for code in Code:
        metrics.count_request("billing", code)

    counts = [
        value(registry, "tenant_requests_total", tenant="billing", outcome=o) for o in ("ok", "refused", "failed")
    ]
    assert counts == [1, 2, len(Code) - 3]
    assert value(registry, "tenant_requests_total", tenant="search", outcome="ok") == 0


def test_refusals_are_counted_by_their_reasons_which_are_known(
    metrics: AccessMetrics, registry: CollectorRegistry
) -> None:
    metrics.count_refusal("unfinished")

    with pytest.raises(KeyError):
        metrics.count_refusal("mood")
    counted = {reason: value(registry, "queue_rejected_total", reason=reason) for reason in REJECT_REASONS}
    assert counted == dict.fromkeys(REJECT_REASONS, 0.0) | {"unfinished": 1.0}
