"""A real Prometheus and Alertmanager, with the rules that are shipped, whose time runs faster by one factor.

The rules look back for hours and days. Here each range and each `for` of them is divided by `FACTOR`, and nothing else
is changed: an hour of the rules lasts a minute. Thresholds stay, those in seconds too.
"""

import http.server
import json
import re
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.acceptance.server_process import REPOSITORY, free_ports
from tests.chaos.case import Skipped

RULES = REPOSITORY / "deploy" / "observe" / "alerts.yaml"
FACTOR = 60  # with scrapes a second apart: at 120 a range of 5m has two samples; at 30 a run takes twice as long
_START_SECONDS = 30.0  # of Prometheus, its first scrape included
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?P<before>\[|\bfor: )(?P<count>\d+)(?P<unit>[smhd])(?=\]|$)", re.MULTILINE)
_PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [rules.yaml]
alerting:
  alertmanagers:
    - static_configs: [{{targets: ["127.0.0.1:{alertmanager}"]}}]
scrape_configs:
  - job_name: babelserve
    static_configs: [{{targets: [{targets}]}}]
"""
_ALERTMANAGER = """
route: {{receiver: here, group_wait: 0s, group_interval: 1s, group_by: [alertname]}}
receivers: [{{name: here, webhook_configs: [{{url: "http://127.0.0.1:{webhook}/"}}]}}]
"""


class Pager:
    """Who is called: notes the names of the alerts that fire."""

    def __init__(self) -> None:
        self.alerts: set[str] = set()
        pager = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # http.server names it so
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                pager.alerts |= {each["labels"]["alertname"] for each in body["alerts"] if each["status"] == "firing"}
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *values: object) -> None:  # noqa: A002
                """Says nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Prometheus:
    """A running Prometheus, at an address such as "http://127.0.0.1:9090"."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str, **parameters: str | float) -> Any:
        """Returns the data of an answer of its API, such as that to `query` or `targets`. Raises OSError."""
        url = f"{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10.0) as answer:
            return json.load(answer)["data"]

    def wait_for_scrape(self) -> None:
        """Waits until a server has been scraped. Raises TimeoutError."""
        ends = time.monotonic() + _START_SECONDS
        while time.monotonic() < ends:
            with suppress(OSError):
                if self.get("query", query="up")["result"]:
                    return
            time.sleep(0.1)
        raise TimeoutError(f"Prometheus has scraped nothing for {_START_SECONDS:g} s")


def scaled(rules: str, factor: int = FACTOR) -> str:
    """Returns rules, or a query, with each range and each `for` divided by a factor."""

    def shorter(found: re.Match[str]) -> str:
        milliseconds = int(found["count"]) * _UNITS[found["unit"]] * 1000 // factor
        return f"{found['before']}{milliseconds}ms"

    return _DURATION.sub(shorter, rules)


@contextmanager
def watched(metrics_ports: Sequence[int]) -> Iterator[tuple[Pager, Prometheus]]:
    """A pager, and the Prometheus that watches servers with the scaled rules. Raises Skipped where there is none."""
    prometheus, alertmanager = (shutil.which(name) for name in ("prometheus", "prometheus-alertmanager"))
    if prometheus is None or alertmanager is None:
        raise Skipped("Debian: packages `prometheus` and `prometheus-alertmanager`")
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="babelserve-")))
        pager = Pager()
        stack.callback(pager.server.server_close)
        stack.callback(pager.server.shutdown)
        port, alert_port = free_ports(2)
        targets = ", ".join(f'"127.0.0.1:{each}"' for each in metrics_ports)
        (directory / "rules.yaml").write_text(scaled(RULES.read_text(encoding="utf-8")))
        (directory / "prometheus.yml").write_text(_PROMETHEUS.format(alertmanager=alert_port, targets=targets))
        (directory / "alertmanager.yml").write_text(_ALERTMANAGER.format(webhook=pager.server.server_port))
        found = Prometheus(f"http://127.0.0.1:{port}")
        _run(
            stack,
            prometheus,
            f"--config.file={directory}/prometheus.yml",
            f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        found.wait_for_scrape()  # until then no server is up, and the pager would be told so
        _run(
            stack,
            alertmanager,
            f"--config.file={directory}/alertmanager.yml",
            f"--storage.path={directory}/alerts",
            f"--web.listen-address=127.0.0.1:{alert_port}",
            "--cluster.listen-address=",
        )
        yield pager, found


def _run(stack: ExitStack, *command: str) -> None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.terminate)
