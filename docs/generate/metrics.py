"""The pages of the metrics and of the alerts."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from docs.generate.markdown_text import code, page, prose, table
from server.telemetry.access_metrics import AccessMetrics
from server.telemetry.catalogue_metrics import CatalogueMetrics
from server.telemetry.device_metrics import DeviceGauges
from server.telemetry.glossary_metrics import GlossaryMetrics
from server.telemetry.metrics import Metrics
from server.telemetry.model_metrics import EngineFamilies, EngineLoad
from server.telemetry.translation_metrics import TranslationFamilies

_ALERTS = Path(__file__).parents[2] / "deploy" / "alerts.yaml"
_ANY = "…"  # stands for values that come from outside; the others are closed sets, and are told


def _device_gauges(registry: CollectorRegistry) -> None:
    gauges = DeviceGauges()
    gauges.watch(_no_memory)
    registry.register(gauges)


def _no_memory() -> tuple[int, int]:
    return 0, 0


# The families of each; a heading's metrics are those of its class that no earlier heading has.
_HEADINGS: dict[str, Callable[[CollectorRegistry], object]] = {
    "Who calls": AccessMetrics,
    "Models that come and go": CatalogueMetrics,
    "Glossaries": GlossaryMetrics,
    "The GPU": _device_gauges,
    "Translations": TranslationFamilies,
    "Engines": EngineFamilies,
    "Calls": lambda registry: None,
    "The process": lambda registry: None,
}


def families() -> list[Metric]:
    """All families that a server may show, each with a series of every value that its labels can have.

    Raises:
        LookupError: one has no series here, so that its labels cannot be told.
    """
    metrics = Metrics(CollectorRegistry())
    metrics.of_model(_ANY, _ANY).watch(lambda: EngineLoad(0, 0, 0, 0, 0, 0, 0))
    metrics.catalogue.add_model(_ANY)
    metrics.catalogue.set_models({}, {(_ANY, _ANY, _ANY): 100})
    metrics.glossaries.count_load(_ANY, is_successful=True)
    metrics.access.add_tenants([_ANY])
    metrics.device.watch(_no_memory)
    metrics.set_build_info(version=_ANY, variant=_ANY, device=_ANY)
    found = list(metrics.registry.collect())
    if silent := [family.name for family in found if not family.samples]:
        raise LookupError(f"metrics without a series: make one in {__name__}: {', '.join(silent)}")
    return found


def shown_name(family: Metric) -> str:
    """The name on the metrics page, without the suffixes of a histogram's series."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def metrics_page() -> str:
    """All metrics with kind, labels and meaning."""
    return page(
        "# Metrics",
        f"On {code('http://HOST:9464/metrics')} ({code('--metrics-port')}), for Prometheus. Labels have closed sets of"
        " values, written out from the start, or names that the operator has given to models, glossaries and tenants;"
        " nothing that a client sends makes a series. A histogram"
        f" has {code('_bucket')}, {code('_sum')} and {code('_count')}.",
        *_sections(families()),
    )


def _sections(found: list[Metric]) -> Iterator[str]:
    sections: dict[str, list[Metric]] = {heading: [] for heading in _HEADINGS}
    for heading, make in _HEADINGS.items():
        registry = CollectorRegistry()
        make(registry)
        names = {family.name for family in registry.collect()}
        sections[heading] += [family for family in found if family.name in names]
        found = [family for family in found if family.name not in names]
    for family in found:
        sections["Calls" if family.name.startswith("babelserve_") else "The process"].append(family)
    for heading, members in reversed(sections.items()):
        rows = [
            (code(shown_name(family)), family.type, _labels(family), prose(family.documentation)) for family in members
        ]
        yield f"## {heading}"
        yield table(("Metric", "Kind", "Labels", "Meaning"), rows)


def _labels(family: Metric) -> str:
    values: dict[str, dict[str, None]] = {}
    for sample in family.samples:
        for label, value in sample.labels.items():
            if label != "le":
                values.setdefault(label, {})[value] = None
    is_info = family.name.endswith("_info")  # its values are of the machine that makes this page
    return "<br>".join(
        code(label) if is_info or _ANY in some else f"{code(label)}: {', '.join(some)}"
        for label, some in values.items()
    )


def alert_rules() -> list[dict[str, Any]]:
    """The rules of deploy/alerts.yaml, recorded ratios and alerts, in their order."""
    document = yaml.safe_load(_ALERTS.read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def alerts_page() -> str:
    """All alerts and recorded ratios of deploy/alerts.yaml."""
    rules = alert_rules()
    return page(
        "# Alerts",
        f"The rules of {code('deploy/alerts.yaml')}, for Prometheus. {code('page')}: someone is needed at once;"
        f" {code('ticket')}: within days.",
        *(block for rule in rules if "alert" in rule for block in _alert(rule)),
        "## Recorded ratios",
        *(f"{code(rule['record'])}\n\n{_expression(rule)}" for rule in rules if "record" in rule),
    )


def prometheus_rule() -> str:
    """The same rules as an object of Kubernetes, for the Prometheus operator: YAML."""
    rules = _ALERTS.read_text(encoding="utf-8")
    head = "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: babelserve\nspec:\n"
    return f"# `make reference` writes this.\n{head}{textwrap.indent(rules, '  ')}"


def _alert(rule: dict[str, Any]) -> Iterator[str]:
    lasting = f", after {rule['for']}" if "for" in rule else ""
    yield f"## {rule['alert']}"
    yield f"{code(rule['labels']['severity'])}{lasting}: {code(rule['annotations']['summary'])}"
    yield _expression(rule)


def _expression(rule: dict[str, Any]) -> str:
    return f"```promql\n{rule['expr'].strip()}\n```"
