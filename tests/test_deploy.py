"""What the files in deploy/ say of the server must fit the server."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from server.telemetry.metrics import Metrics
from server.telemetry.model_metrics import EngineLoad

DEPLOY = Path(__file__).parents[1] / "deploy"
DASHBOARDS = sorted((DEPLOY / "observe" / "dashboards").glob("*.json"))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: package `prometheus`)")
@pytest.mark.parametrize(
    "command",
    [
        ["check", "config", "--lint=all", "prometheus.yml"],
        ["check", "rules", "--lint=all", "observe/alerts.yaml"],
        ["test", "rules", "observe/alerts_test.yaml"],
    ],
    ids=" ".join,
)
def test_prometheus_takes_the_rules_and_each_alert_fires_on_what_it_is_for(command: list[str]) -> None:
    done = subprocess.run(["promtool", *command], cwd=DEPLOY, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_server_of_many_models_is_scraped() -> None:
    metrics = Metrics(CollectorRegistry())
    for version in range(1, 51):
        metrics.of_model("m", str(version))
    num_samples = sum(len(family.samples) for family in metrics.registry.collect())
    files = ["prometheus.yml", "kubernetes/components/monitoring/monitor.yaml"]
    limits = [
        int(limit)
        for file in files
        for limit in re.findall(r"sample_?[lL]imit: (\d+)", (DEPLOY / file).read_text(encoding="utf-8"))
    ]

    assert [limit for limit in limits if limit < num_samples] == []


def test_every_alert_has_a_test() -> None:
    names = re.findall(r"alert: (\w+)", (DEPLOY / "observe" / "alerts.yaml").read_text())
    tests = (DEPLOY / "observe" / "alerts_test.yaml").read_text()

    assert names
    assert [name for name in names if f"alertname: {name}\n        exp_alerts:" not in tests] == []


def test_every_alert_has_an_entry_that_says_what_to_do() -> None:
    rules = (DEPLOY / "observe" / "alerts.yaml").read_text()
    entries = re.findall(r"^### (\w+)$", (DEPLOY.parent / "docs" / "guides" / "alerts.md").read_text(), re.MULTILINE)
    alerts = re.findall(r"alert: (\w+)", rules)

    assert sorted(entries) == sorted(alerts)
    assert re.findall(r"runbook: docs/guides/alerts.md#(\w+)", rules) == [each.lower() for each in alerts]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: package `prometheus`)")
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_prometheus_understands_every_query_of_a_dashboard(path: Path, tmp_path: Path) -> None:
    panels = json.loads(path.read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))

    done = subprocess.run(
        ["promtool", "check", "rules", "rules.json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(queries)} rules found" in done.stdout
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: package `prometheus`)")
@pytest.mark.parametrize("source", ["capacity", "guide"])
def test_a_server_of_two_models_whose_cores_are_busy_has_no_lane_left(source: str, tmp_path: Path) -> None:
    guide = (DEPLOY.parent / "docs" / "guides" / "operate.md").read_text(encoding="utf-8")
    (by_instance,) = (
        target["expr"]
        for panel in json.loads((DEPLOY / "observe" / "dashboards" / "capacity.json").read_text())["panels"]
        for target in panel["targets"]
        if panel["title"] == "Busy lanes"
    )
    (in_all,) = re.findall(r"^\| how busy its lanes are, of 1 \| `(.*)` \|$", guide, re.MULTILINE)
    expression, labels = (by_instance, '{instance="a"}') if source == "capacity" else (in_all, "{}")
    models = [f'instance="a", model="{name}", version="1"' for name in "mn"]
    series = {
        **{f"babelserve_step_duration_seconds_sum{{{each}}}": "0+50x20" for each in models},  # of 60, on two cores
        **{f"babelserve_encode_duration_seconds_sum{{{each}}}": "0+10x20" for each in models},
        **{f'babelserve_lanes{{{each}, state="serving"}}': "2x20" for each in models},
        **{f'babelserve_lanes{{{each}, state="out"}}': "0x20" for each in models},
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": expression, "eval_time": "15m", "exp_samples": [{"labels": labels, "value": 1.0}]}
        ],
    }
    (tmp_path / "test.json").write_text(json.dumps({"tests": [test]}))

    done = subprocess.run(
        ["promtool", "test", "rules", "test.json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_call_through_a_gateway_is_not_counted_twice() -> None:
    guides = [DEPLOY.parent / "docs" / "guides" / name for name in ("operate.md", "alerts.md")]
    both = r"babelserve_(?:requests_total|queue_rejected_total|ready)\b"  # what a gateway's page has, too
    sums = [
        query
        for path in [*DASHBOARDS, *guides]
        for query in re.findall(rf"sum(?: by \([^)]*\))? ?\((?:rate\()?{both}[^)]*", path.read_text(encoding="utf-8"))
    ]

    assert len(sums) >= 6
    assert [query for query in sums if "job" not in query] == []


def test_every_recorded_ratio_of_a_dashboard_is_a_rule() -> None:
    recorded = set(re.findall(r"record: (\S+)", (DEPLOY / "observe" / "alerts.yaml").read_text()))
    named = {name for path in DASHBOARDS for name in re.findall(r"babelserve:\w+:\w+", path.read_text())}

    assert named
    assert named - recorded == set()


def test_every_metric_of_the_rules_and_dashboards_is_on_the_page() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.of_model("m", "1").watch(lambda: EngineLoad(0, 0, 0, 0, 0, 0, 0))
    metrics.catalogue.add_model("m")
    metrics.catalogue.set_models({}, {("m", "1", "0"): 100})
    metrics.glossaries.count_load("it", is_successful=True)
    metrics.access.add_tenants(["a"])
    on_page = {sample.name for family in metrics.registry.collect() for sample in family.samples}
    with_tls = {"babelserve_tls_certificate_expiry_timestamp_seconds"}

    files = [DEPLOY / "observe" / "alerts.yaml", *DASHBOARDS]
    named = {
        name for path in files for name in re.findall(r"\b(?:babelserve|process)_[a-z_]+[a-z]\b", path.read_text())
    }

    assert named - with_tls - on_page == set()
