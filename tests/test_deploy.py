"""What the files in deploy/ say of the server must fit the server."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from server.telemetry.metrics import Metrics
from server.telemetry.model_metrics import EngineLoad

DEPLOY = Path(__file__).parents[1] / "deploy"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: package `prometheus`)")
@pytest.mark.parametrize(
    "command",
    [
        ["check", "config", "--lint=all", "prometheus.yml"],
        ["check", "rules", "--lint=all", "alerts.yaml"],
        ["test", "rules", "alerts_test.yaml"],
    ],
    ids=" ".join,
)
def test_prometheus_takes_the_rules_and_each_alert_fires_on_what_it_is_for(command: list[str]) -> None:
    done = subprocess.run(["promtool", *command], cwd=DEPLOY, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_test() -> None:
    names = re.findall(r"alert: (\w+)", (DEPLOY / "alerts.yaml").read_text())
    tests = (DEPLOY / "alerts_test.yaml").read_text()

    assert names
    assert [name for name in names if f"alertname: {name}\n        exp_alerts:" not in tests] == []


def test_every_metric_of_the_rules_is_on_the_page() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.of_model("m", "1").watch(lambda: EngineLoad(0, 0, 0, 0, 0, 0, 0))
    metrics.catalogue.add_model("m")
    metrics.catalogue.set_models({}, {("m", "1", "0"): 100})
    metrics.glossaries.count_load("it", is_successful=True)
    on_page = {sample.name for family in metrics.registry.collect() for sample in family.samples}
    with_tls = {"babelserve_tls_certificate_expiry_timestamp_seconds"}

    rules = (DEPLOY / "alerts.yaml").read_text()
    named = set(re.findall(r"\b(?:babelserve|process)_[a-z_]+[a-z]\b", rules))

    assert named - with_tls - on_page == set()
