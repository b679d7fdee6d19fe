"""The port of the API over HTTP, in front of an engine that echoes."""

import socket
import subprocess
import sys
from typing import Any

import pytest

from server.access.access import Access
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.translation.calls import Calls
from server.translation.long_messages import LongMessages
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from server.web.opening import open_http
from tests.server.web.client import call


def opened(metrics: Metrics, translator: Translator, port: int) -> Any:
    calls = Calls(metrics, RunningCalls(), 60.0)
    settings = Settings(http_port=port)
    return open_http(settings, translator, calls, Access(metrics.access), LongMessages(), 8, lambda: True)


async def test_it_translates_and_answers_health(metrics: Metrics, translator: Translator) -> None:
    http = opened(metrics, translator, 0)
    await http.start()
    try:
        answer = await call(
            http.port, "POST", "/v1/translate", {"contents": ["A dog runs."], "targetLanguageCode": "de"}
        )
        health = await call(http.port, "GET", "/healthz")
    finally:
        await http.stop()

    assert answer.json["translations"][0]["text"] == "A dog runs."
    assert health.status == 200


async def test_a_port_that_is_taken_cannot_be_had(metrics: Metrics, translator: Translator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        opened(metrics, translator, taken.getsockname()[1])


def test_a_server_without_http_imports_none_of_it() -> None:
    script = "import sys, server.app; print([each for each in sys.modules if each.startswith('server.web')])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"
