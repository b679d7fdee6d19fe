import sys
from types import ModuleType

import pytest

from server.errors import SettingsError
from server.telemetry.trace_exporters import open_tracing
from server.telemetry.tracing import Tracing


def test_without_the_setting_opentelemetry_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "server.telemetry.otel", raising=False)

    tracing = open_tracing("none", "1.2.3")
    tracing.close()

    assert type(tracing) is Tracing
    assert "server.telemetry.otel" not in sys.modules


def test_without_the_extra_the_setting_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "server.telemetry.otel", raising=False)
    missing: dict[str, ModuleType | None] = dict.fromkeys(("opentelemetry", "opentelemetry.exporter"))
    for name in [*missing, *(name for name in sys.modules if name.startswith("opentelemetry"))]:
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(SettingsError, match=r"--traces: otlp needs OpenTelemetry: pip install 'babelserve\[otel\]'"):
        open_tracing("otlp", "1.2.3")
