"""O1: the alerts that are shipped, in a real Prometheus and Alertmanager: which fire for a fault, and which do not."""

import asyncio
import http.server
import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.report import Check
from tests.acceptance.server_process import REPOSITORY, free_ports
from tests.chaos.case import Case, Options, Skipped, asynchronous, none, told
from tests.chaos.clients import clients
from tests.chaos.failpoints import Action, Point
from tests.chaos.requests import keyed_requests
from tests.chaos.servers import BrokenServer, Spec, broken_server

_RULES = REPOSITORY / "deploy" / "alerts.yaml"
_SPARE_SECONDS = 15.0  # to be scraped, evaluated and sent
_AFTER_SECONDS = 5.0
_SCRAPED_SECONDS = 10.0  # of calls, before a fault
_CALM_RATE = 20.0  # calls a second
_TIMEOUT_SECONDS = 5.0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is done to a server, and whom it calls.

    Attributes:
        name: the case of the plan, and what is done.
        expected: the alert that must fire.
        within: seconds until the server itself has noticed, and the alert's `for`.
        strike: does it.
        allowed: alerts that may fire besides.
        rate: calls a second.
        spec: of the server.
    """

    name: str
    expected: str
    within: float
    strike: Callable[[BrokenServer], None]
    allowed: frozenset[str] = frozenset()
    rate: float = _CALM_RATE
    spec: Spec | None = None


_OF_ERRORS = frozenset({"BabelserveErrorsFast", "BabelserveErrorsSteady", "BabelserveErrorsSlow"})
FAULTS = (
    Fault(
        name="R5, kill -9", expected="BabelserveDown", within=60.0, strike=lambda server: server.process.process.kill()
    ),
    Fault(
        name="R6, a lane that hangs",  # after which the process ends
        expected="BabelserveDown",
        within=30.0 + 60.0,
        strike=lambda server: server.arm(Point.BEFORE_STEP, Action.HANG),
        allowed=_OF_ERRORS,
    ),
    Fault(
        name="R6, steps that fail",
        expected="BabelserveStepsFail",
        within=0.0,
        strike=lambda server: server.arm(Point.BEFORE_STEP, Action.RAISE, 2),
        allowed=_OF_ERRORS,
    ),
    Fault(
        name="R7, replies that fail",
        expected="BabelserveErrorsFast",
        within=0.0,
        strike=lambda server: server.arm(Point.BEFORE_REPLY, Action.RAISE, -1),
        allowed=_OF_ERRORS,
    ),
    Fault(
        name="R2, overload",
        expected="BabelserveOverloaded",
        within=300.0,
        strike=lambda server: None,
        allowed=frozenset({"BabelserveErrorsSlow"}),  # a ticket: up to one answer in fifty is late, and a failed call
        rate=150.0,  # three times what it can do
        spec=Spec(step_seconds=0.02, row_seconds=0.001),
    ),
)


async def alerted(options: Options) -> list[Check]:
    """Nothing fires in calm (R1); each fault calls by its alert, in time, and by no other."""
    faults = FAULTS[:1] if options.is_quick else FAULTS
    return [
        *await _calm(options.count(120, 20)),
        *[check for fault in faults for check in await _struck(fault)],
    ]


async def _calm(seconds: int) -> list[Check]:
    with broken_server() as server, _watched(server) as (pager, address):
        async with _called(server, _CALM_RATE):
            await asyncio.sleep(seconds)
            targets = _get(f"{address}/api/v1/targets")["data"]["activeTargets"]
        health = [each["health"] for each in targets]
    return [
        none(f"R1, {seconds} s of calm: alerts", sorted(pager.alerts)),
        Check("scraped", str(health), "['up']", health == ["up"]),
    ]


async def _struck(fault: Fault) -> list[Check]:
    with broken_server(fault.spec) as server, _watched(server) as (pager, _):
        async with _called(server, fault.rate):
            await asyncio.sleep(_SCRAPED_SECONDS)
            started = time.monotonic()
            await asyncio.to_thread(fault.strike, server)
            most = fault.within + _SPARE_SECONDS
            while fault.expected not in pager.alerts and time.monotonic() - started < most:
                await asyncio.sleep(0.2)
            seconds = time.monotonic() - started
            await asyncio.sleep(_AFTER_SECONDS)  # what else there may be
    fired = fault.expected in pager.alerts
    return [
        Check(
            f"{fault.name}: {fault.expected}",
            f"after {seconds:.0f} s" if fired else f"not in {seconds:.0f} s",
            f"<= {most:g} s",
            fired,
        ),
        none(f"{fault.name}: other alerts", sorted(pager.alerts - {fault.expected} - fault.allowed)),
        told(f"{fault.name}: all", str(sorted(pager.alerts))),
    ]


@asynccontextmanager
async def _called(server: BrokenServer, rate: float) -> AsyncIterator[None]:
    """Calls all the while, so many a second, whatever becomes of them."""
    over = asyncio.Event()
    async with clients([server.address], keyed_requests(200)) as client:
        load = asyncio.create_task(client.open(rate, 3600.0, timeout=lambda: _TIMEOUT_SECONDS, until=over))
        try:
            yield
        finally:
            over.set()
            await load


def _get(url: str) -> dict[str, dict[str, list[dict[str, str]]]]:
    with urllib.request.urlopen(url, timeout=10.0) as answer:
        found: dict[str, dict[str, list[dict[str, str]]]] = json.load(answer)
    return found


CASES = (Case("O1", "alerts, in a real Prometheus and Alertmanager", asynchronous(alerted)),)
