"""Where the spans of calls go: nowhere, or by OTLP to a collector."""

import importlib

from server.errors import SettingsError
from server.telemetry.tracing import Tracing

EXPORTERS = ("none", "otlp")


def open_tracing(exporter: str, version: str) -> Tracing:
    """Returns what traces the calls. It imports OpenTelemetry only for "otlp", as the extra `otel` may be missing.

    Args:
        exporter: one of `EXPORTERS`.
        version: of this build.

    Raises:
        SettingsError: OpenTelemetry is asked for and not installed.
    """
    if exporter == "none":
        return Tracing()
    try:
        otel = importlib.import_module("server.telemetry.otel")
    except ImportError as error:
        raise SettingsError([f"--traces: {exporter} needs OpenTelemetry: pip install 'babelserve[otel]'"]) from error
    tracing: Tracing = otel.OtelTracing(otel.exporting_provider(version))
    return tracing
