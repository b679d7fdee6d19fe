"""All ports, in front of an engine that echoes."""

import asyncio
import importlib
import socket
from pathlib import Path
from typing import Any

import grpc
import pytest

from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.errors import SettingsError
from server.listening import listening
from server.rpc.health import Health
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.translation.calls import Calls
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.server.echo_engine import EchoEngine
from tests.server.rpc.parts import REQUEST
from tests.server.web.client import call

JSON = {"contents": ["A dog runs."], "targetLanguageCode": "de"}


def ports(**more: Any) -> Settings:
    free = {"port": 0, "health_port": 0, "admin_port": 0, "metrics_port": 0, "http_port": 0}
    return Settings(**(free | more))


def listen(settings: Settings, metrics: Metrics, translator: Translator, health: Health | None = None) -> Any:
    running = RunningCalls()
    calls = Calls(metrics, running, 60.0)
    health = health or Health(metrics)
    return listening(settings, metrics, translator, calls, running, health, None, asyncio.Event())


async def test_every_front_is_served(metrics: Metrics, translator: Translator) -> None:
    health = Health(metrics)
    async with listen(ports(), metrics, translator, health) as fronts:
        before = await call(fronts.http.port, "GET", "/healthz")
        health.set_serving(True)
        after = await call(fronts.http.port, "GET", "/healthz")
        over_http = await call(fronts.http.port, "POST", "/v1/translate", JSON)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{fronts.rpc.ports[0]}") as channel:
            over_grpc = await TranslationServiceStub(channel).Translate(REQUEST)
        page = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", fronts.metrics_port))
        page.close()

    assert (before.status, after.status) == (503, 200)
    assert over_http.json["translations"][0]["text"] == "A dog runs."
    assert over_grpc.translations[0].text == REQUEST.contents[0]


async def test_without_a_port_there_is_no_http(metrics: Metrics, translator: Translator) -> None:
    async with listen(ports(http_port=None), metrics, translator) as fronts:
        assert fronts.http is None
        await fronts.drain()


async def test_a_drain_ends_all_fronts_alike(metrics: Metrics, translator: Translator, engine: EchoEngine) -> None:
    engine.is_holding = True
    async with listen(ports(), metrics, translator) as fronts:
        running = asyncio.create_task(call(fronts.http.port, "POST", "/v1/translate", JSON))
        await engine.submitted.wait()
        draining = asyncio.create_task(fronts.drain())
        await asyncio.sleep(0)
        engine.release(0)

        assert (await running).status == 200
        await draining
        with pytest.raises(ConnectionRefusedError):
            await call(fronts.http.port, "GET", "/healthz")


async def test_a_port_that_is_taken_is_named_with_all_others(
    metrics: Metrics, translator: Translator, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError) as caught:
            async with listen(ports(http_port=port, health_port=port), metrics, translator):
                pass

    assert f"--http-port: cannot listen on 127.0.0.1 port {port}: Address already in use" in caught.value.faults
    assert any(fault.startswith("--health-port") for fault in caught.value.faults)


async def test_without_the_extra_it_says_what_to_install(
    metrics: Metrics, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)

    with pytest.raises(SettingsError, match=r"--http-port: needs Starlette and uvicorn: pip install"):
        async with listen(ports(), metrics, translator):
            pass
