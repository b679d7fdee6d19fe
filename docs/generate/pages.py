"""Every page that is made of the source, by its path from `docs/`: the reference, and the API over HTTP."""

from collections.abc import Callable
from pathlib import Path

from docs.generate.api import api_page
from docs.generate.commands import commands_page, settings_page
from docs.generate.formats import manifest_page, recipe_page
from docs.generate.metrics import alerts_page, metrics_page, prometheus_rule
from docs.generate.openapi import description_file, documentation_file
from docs.generate.python_client import client_page

ROOT = Path(__file__).parents[1]

PAGES: dict[str, Callable[[], str]] = {
    "reference/settings.md": settings_page,
    "reference/commands.md": commands_page,
    "reference/metrics.md": metrics_page,
    "reference/alerts.md": alerts_page,
    "reference/api.md": api_page,
    "reference/python.md": client_page,
    "reference/recipe.md": recipe_page,
    "reference/manifest.md": manifest_page,
    "../server/web/openapi.yaml": description_file,
    "../server/web/page/docs.html": documentation_file,
    "../deploy/kubernetes/components/monitoring/rules.yaml": prometheus_rule,
}
