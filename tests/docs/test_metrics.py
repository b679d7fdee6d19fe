"""Every metric of the page that Prometheus reads is in the reference, and every rule of deploy/observe/alerts.yaml."""

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

import docs.generate.metrics
from docs.generate.metrics import alerts_page, metrics_page
from server.telemetry.metrics import Metrics

ALERTS = (Path(__file__).parents[2] / "deploy" / "observe" / "alerts.yaml").read_text(encoding="utf-8")


def test_every_metric_is_there_once_with_its_kind() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.device.watch(lambda: (0, 0))  # as on a GPU
    on_page = re.findall(r"^# TYPE (\w+) (\w+)$", generate_latest(metrics.registry).decode(), re.MULTILINE)

    assert ("babelserve_queue_depth_limit", "gauge") in on_page
    assert sorted(re.findall(r"^\| `(\w+)` \| (\w+) \|", metrics_page(), re.MULTILINE)) == sorted(on_page)


def test_every_metric_has_a_meaning() -> None:
    rows = re.findall(r"^\| `\w+` .*$", metrics_page(), re.MULTILINE)

    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []


def test_labels_are_told_with_the_values_of_closed_sets() -> None:
    page = metrics_page()

    assert "| `babelserve_lanes` | gauge | `model`<br>`version`<br>`state`: serving, suspect, out |" in page
    assert "| `babelserve_tenant_requests_total` | counter | `tenant`<br>`outcome`: ok, refused, failed |" in page
    assert "| `babelserve_queue_depth` | gauge | `model`<br>`version` |" in page
    assert "| `babelserve_batch_rows` | histogram | `model`<br>`version` |" in page
    assert "| `babelserve_build_info` | gauge | `version`<br>`python`<br>`variant`<br>`device` |" in page


def test_a_metric_whose_labels_cannot_be_told_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class More(Metrics):
        def __init__(self, registry: CollectorRegistry) -> None:
            super().__init__(registry)
            Counter("babelserve_more", "More.", ("kind",), registry=registry)

    monkeypatch.setattr(docs.generate.metrics, "Metrics", More)

    with pytest.raises(LookupError, match="babelserve_more"):
        metrics_page()


def test_each_metric_stands_under_the_heading_of_its_class() -> None:
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", metrics_page(), re.MULTILINE | re.DOTALL))

    assert "`babelserve_step_duration_seconds`" in sections["Engines"]
    assert "`babelserve_truncated_sentences_total`" in sections["Translations"]
    assert "`babelserve_model_loads_total`" in sections["Models that come and go"]
    assert "`babelserve_tenant_cost_seconds_total`" in sections["Who calls"]
    assert "`babelserve_requests_total`" in sections["Calls"]
    assert "`process_open_fds`" in sections["The process"]


def test_every_alert_is_there_with_its_condition() -> None:
    names = re.findall(r"alert: (\w+)", ALERTS)

    page = alerts_page()

    assert names
    assert re.findall(r"^## (Babelserve\w+)$", page, re.MULTILINE) == names
    assert '`page`, after 1m: `{{ or $labels.instance "every server" }} cannot be scraped`' in page
    assert '```promql\nup{job=~"babelserve(-gateway)?"} == 0 or absent(up{job="babelserve"})\n```' in page


def test_every_recorded_ratio_is_there() -> None:
    names = re.findall(r"record: ([\w:]+)", ALERTS)

    assert names
    assert re.findall(r"^`(babelserve:[\w:]+)`$", alerts_page(), re.MULTILINE) == names
