"""O1: the alerts that are shipped, in a real Prometheus and Alertmanager: which fire for a fault, and which do not."""

import http.server
import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.acceptance.report import Check
from tests.acceptance.server_process import REPOSITORY, free_ports
from tests.chaos.case import Case, Options, Skipped, none, told
from tests.chaos.failpoints import Action, Point
from tests.chaos.servers import BrokenServer, broken_server

_RULES = REPOSITORY / "deploy" / "alerts.yaml"
_CALM_SECONDS = 20.0
_FIRE_SECONDS = 240.0
_PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
alerting:
  alertmanagers:
    - static_configs: [{{targets: ["127.0.0.1:{alertmanager}"]}}]
scrape_configs:
  - job_name: babelserve
    static_configs: [{{targets: ["127.0.0.1:{server}"]}}]
"""
_ALERTMANAGER = """
route: {{receiver: here, group_wait: 0s, group_by: [alertname]}}
receivers: [{{name: here, webhook_configs: [{{url: "http://127.0.0.1:{webhook}/"}}]}}]
"""


class Pager:
    """Who is called: notes the names of the alerts."""

    def __init__(self) -> None:
        self.alerts: list[str] = []
        pager = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # http.server names it so
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                pager.alerts += [alert["labels"]["alertname"] for alert in body["alerts"]]
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *values: object) -> None:  # noqa: A002
                """Says nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@contextmanager
def _watched(server: BrokenServer) -> Iterator[tuple[Pager, str]]:
    """Prometheus and Alertmanager, which watch a server with the rules that are shipped; yields Prometheus' address."""
    prometheus, alertmanager = (shutil.which(name) for name in ("prometheus", "prometheus-alertmanager"))
    if prometheus is None or alertmanager is None:
        raise Skipped("Debian: packages `prometheus` and `prometheus-alertmanager`")
    if not _RULES.exists():
        raise Skipped(f"{_RULES.name} is not there")
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="babelserve-")))
        pager = Pager()
        stack.callback(pager.server.shutdown)
        port, alert_port = free_ports(2)
        names = {"rules": _RULES, "alertmanager": alert_port, "server": server.process.metrics_port}
        (directory / "prometheus.yml").write_text(_PROMETHEUS.format(**names))
        (directory / "alertmanager.yml").write_text(_ALERTMANAGER.format(webhook=pager.server.server_port))
        commands = (
            [
                prometheus,
                f"--config.file={directory}/prometheus.yml",
                f"--storage.tsdb.path={directory}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            [
                alertmanager,
                f"--config.file={directory}/alertmanager.yml",
                f"--storage.path={directory}/alerts",
                f"--web.listen-address=127.0.0.1:{alert_port}",
                "--cluster.listen-address=",
            ],
        )
        for command in commands:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield pager, f"http://127.0.0.1:{port}"


def alerted(options: Options) -> Iterator[Check]:
    """Nothing fires in calm; a server that is gone, and a lane that hangs, call somebody."""
    with broken_server() as server, _watched(server) as (pager, address):
        time.sleep(_CALM_SECONDS)
        yield none("alerts in calm", pager.alerts)
        targets = _get(f"{address}/api/v1/targets")["data"]["activeTargets"]
        yield Check(
            "scraped", str([each["health"] for each in targets]), "up", all(t["health"] == "up" for t in targets)
        )
        started = time.monotonic()
        server.process.process.kill()
        while not pager.alerts and time.monotonic() - started < _FIRE_SECONDS:
            time.sleep(0.5)
        seconds = time.monotonic() - started
        yield Check(
            "after kill -9", f"{sorted(set(pager.alerts))} after {seconds:.0f} s", "an alert", bool(pager.alerts)
        )
    if options.is_quick:
        return
    with broken_server() as server, _watched(server) as (pager, _):
        server.arm(Point.BEFORE_STEP, Action.RAISE, -1)
        time.sleep(_CALM_SECONDS)
        yield told("while every step fails", f"{sorted(set(pager.alerts))} after {_CALM_SECONDS:g} s")


def _get(url: str) -> dict[str, dict[str, list[dict[str, str]]]]:
    with urllib.request.urlopen(url, timeout=10.0) as answer:
        found: dict[str, dict[str, list[dict[str, str]]]] = json.load(answer)
    return found


CASES = (Case("O1", "alerts, in a real Prometheus and Alertmanager", alerted),)
