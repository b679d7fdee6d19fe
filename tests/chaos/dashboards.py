"""O2: every query of the shipped dashboards, in a real Prometheus under load; draws each panel for the docs."""

import asyncio
import json
import math
import time
from pathlib import Path
from typing import Any

from tests.acceptance.report import Check
from tests.acceptance.server_process import REPOSITORY
from tests.chaos.alerts import called
from tests.chaos.case import Case, Options, asynchronous, none, told
from tests.chaos.servers import Spec, replicas
from tests.chaos.watching import FACTOR, Prometheus, scaled, watched

DASHBOARDS = sorted((REPOSITORY / "deploy" / "observe" / "dashboards").glob("*.json"))
_PICTURES = REPOSITORY / "docs" / "guides" / "pictures"
_SPEC = Spec(step_seconds=0.02, row_seconds=0.001)  # two replicas answer about 100 calls a second
_RATES = (40.0, 40.0, 160.0, 40.0)  # calls a second, each for a quarter of the time

_Series = list[tuple[str, list[tuple[float, float]]]]


async def shown(options: Options) -> list[Check]:
    """Every query gives a number; `--report` draws what they give."""
    with replicas(2, _SPEC) as group, watched([server.metrics_port for server in group.servers]) as (_, prometheus):
        started = time.time()
        for rate in _RATES:
            async with called(group.servers, rate):
                await asyncio.sleep(options.count(30, 5))
        checks = []
        for path in DASHBOARDS:
            panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
            drawn = [(panel, _series(panel, prometheus, started)) for panel in panels]
            empty = [f"{panel['title']}: {expr}" for panel, found in drawn for expr in _without_numbers(panel, found)]
            checks.append(none(f"{path.stem}: queries without a number", empty, f"none of {_num_queries(panels)}"))
            if not options.is_quick:
                picture = _PICTURES / f"dashboard-{path.stem}.png"
                _draw(drawn, started, picture)
                checks.append(told(f"{path.stem}: picture", str(picture.relative_to(REPOSITORY))))
    return checks


def _series(panel: dict[str, Any], prometheus: Prometheus, started: float) -> dict[str, _Series]:
    """Returns what each query of a panel gives: legends, and points of Unix time and value."""
    found: dict[str, _Series] = {}
    for target in panel["targets"]:
        query = scaled(target["expr"])
        data = prometheus.get("query_range", query=query, start=started, end=time.time(), step=1)
        found[target["expr"]] = [
            (_legend(target["legendFormat"], each["metric"]), [(at, float(value)) for at, value in each["values"]])
            for each in data["result"]
        ]
    return found


def _legend(form: str, labels: dict[str, str]) -> str:
    for name, value in labels.items():
        form = form.replace(f"{{{{{name}}}}}", value)
    return form


def _without_numbers(panel: dict[str, Any], found: dict[str, _Series]) -> list[str]:
    return [
        expr
        for target in panel["targets"]
        for expr in [target["expr"]]
        if not any(math.isfinite(value) for _, points in found[expr] for _, value in points)
    ]


def _num_queries(panels: list[dict[str, Any]]) -> int:
    return sum(len(panel["targets"]) for panel in panels)


def _draw(drawn: list[tuple[dict[str, Any], dict[str, _Series]]], started: float, picture: Path) -> None:
    """Draws panels two in a row, as Grafana does, over the minutes that the run stands for."""
    import matplotlib as mpl  # noqa: PLC0415  # for a picture that only `make observe` draws

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots((len(drawn) + 1) // 2, 2, figsize=(12, 1.25 * len(drawn)), layout="constrained")
    for (panel, found), axis in zip(drawn, axes.flat, strict=False):
        for legend, points in [each for series in found.values() for each in series]:
            axis.plot([(at - started) * FACTOR / 60 for at, _ in points], [value for _, value in points], label=legend)
        axis.set_title(f"{panel['title']} ({panel['fieldConfig']['defaults']['unit']})", fontsize=9, loc="left")
        axis.set_ylim(bottom=0)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=6, loc="upper left")
    figure.savefig(picture, dpi=75)
    plt.close(figure)


CASES = (Case("O2", "dashboards, in a real Prometheus under load", asynchronous(shown)),)
