"""The server's life within the tests' own process; tests/e2e has that of real processes."""

import asyncio
import contextlib
import itertools
import logging
import os
import re
import shutil
import signal
import socket
import sys
import threading
import urllib.request
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.app import serve
from server.bundle.bundle import Bundle
from server.errors import BundleError, SettingsError
from server.models import first_models, start_up
from server.models.catalogue import Catalogue
from server.models.loading import load_model, process_memory
from server.models.model import Model, SentenceEngine
from server.models.proofs import Proofs
from server.settings.settings import Settings
from server.translation.memory import MemoryBudget
from tests.acceptance.server_process import free_ports

REQUEST = pb.TranslateRequest(contents=["A dog runs."], target_language_code="de")
SECONDS = 100.0  # far above what any of these needs; a hang fails


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """For `serve` takes the root logger over."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    """One that nobody listens to is ignored meanwhile, or it would end the tests."""
    before = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def settings(bundle: Path, **more: Any) -> Settings:
    """Of a server on free ports, which leaves without delay."""
    ports = {"port": 0, "health_port": 0, "admin_port": 0, "metrics_port": 0}
    return Settings(bundle=bundle, variant="cpu-fp32", lanes=1, drain_delay=0.0, **(ports | more))


@contextlib.contextmanager
def stderr_pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[TextIO]:
    """Takes the place of stderr, in the test itself: between it and its fixtures pytest sets stderr anew."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as readable, os.fdopen(writer, "w") as writable:
        monkeypatch.setattr(sys, "stderr", writable)
        yield readable


async def test_the_faults_of_all_ports_and_of_the_bundle_are_listed_together(tmp_path: Path) -> None:
    names = ("metrics_port", "http_port", "port", "health_port", "admin_port")
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        taken = {name: each.getsockname()[1] for name, each in zip(names, sockets, strict=True)}

        with pytest.raises(SettingsError) as caught:
            await serve(settings(tmp_path, **taken), "1.2.3")

    *ports, others, bundle = caught.value.faults
    for fault, (name, port) in zip(ports, taken.items(), strict=True):
        assert fault == f"--{name.replace('_', '-')}: cannot listen on 127.0.0.1 port {port}: Address already in use"
    flags = "--metrics-port 0 --http-port 0 --port 0 --health-port 0 --admin-port 0"
    assert others.endswith(f"give it ports of its own, or free ones, which it tells: {flags}")
    assert bundle == f"{tmp_path / 'manifest.json'}: cannot be read: No such file or directory"


async def test_a_bundle_that_is_none_ends_the_server_and_frees_its_ports(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    with pytest.raises(BundleError, match=r"manifest\.json: cannot be read"):
        await serve(settings(tmp_path, metrics_port=port), "1.2.3")

    with socket.create_server(("127.0.0.1", port)):
        pass


async def test_a_signal_before_the_model_is_loaded_ends_the_server(
    tiny_bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stderr_pipe(monkeypatch) as stderr:
        serving = asyncio.create_task(serve(settings(tiny_bundle.directory), "1.2.3"))
        await asyncio.sleep(0)  # it starts

        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(serving, SECONDS)
        sys.stderr.close()

        assert stderr.read() == ""


async def test_a_server_serves_until_a_signal_comes(tiny_bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt: list[threading.Thread] = []
    monkeypatch.setattr("server.app.be_prompt", lambda: prompt.append(threading.current_thread()))
    with stderr_pipe(monkeypatch) as stderr:
        serving = asyncio.create_task(serve(settings(tiny_bundle.directory), "1.2.3"))
        line = await asyncio.wait_for(asyncio.to_thread(stderr.readline), SECONDS)
    address = line.partition(" on ")[2].split()[0]
    health_port, admin_port = re.findall(r"(?:health on port|admin on) (\d+)", line)
    (page,) = re.findall(r"http://\S+", line)

    async with grpc.aio.insecure_channel(address) as channel:
        response = await TranslationServiceStub(channel).Translate(REQUEST, timeout=SECONDS)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{health_port}") as channel:
        ready = await HealthStub(channel).Check(HealthCheckRequest(service="readiness"), timeout=SECONDS)
    metrics = await asyncio.to_thread(lambda: urllib.request.urlopen(page).read().decode())
    signal.raise_signal(signal.SIGINT)
    await asyncio.wait_for(serving, SECONDS)

    assert line.startswith("babelserve: SERVING tiny 0 (cpu-fp32, lanes: 1) on 127.0.0.1:")
    assert response.translations[0].text
    assert ready.status == HealthCheckResponse.SERVING
    assert prompt == [threading.current_thread()]
    assert 'babelserve_build_info{device="cpu",' in metrics
    assert 'variant="cpu-fp32",version="1.2.3"} 1.0' in metrics
    for port in (address.rpartition(":")[2], health_port, admin_port, page.split(":")[2].partition("/")[0]):
        with socket.create_server(("127.0.0.1", int(port))):
            pass  # it is free again


async def test_a_model_that_is_replaced_leaves_memory(
    tiny_bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines: list[weakref.ref[SentenceEngine]] = []

    def load(*arguments: Any, **more: Any) -> Model:
        model = load_model(*arguments, **more)
        engines.append(weakref.ref(model.engine))
        return model

    monkeypatch.setattr("server.models.bundle_loader.load_model", load)
    shutil.copytree(tiny_bundle.directory, tmp_path / "models" / "tiny" / "1")
    with stderr_pipe(monkeypatch) as stderr:
        serving = asyncio.create_task(serve(settings(tmp_path, models=tmp_path / "models"), "1.2.3"))
        line = await asyncio.wait_for(asyncio.to_thread(stderr.readline), SECONDS)
        address = line.partition(" on ")[2].split()[0]
        shutil.copytree(tiny_bundle.directory, tmp_path / "models" / "tiny" / "2")
        async with grpc.aio.insecure_channel(address) as channel, asyncio.timeout(SECONDS):
            stub = TranslationServiceStub(channel)
            for _ in itertools.count():
                await asyncio.sleep(0.1)
                if (await stub.Translate(REQUEST)).model_version == "2" and engines[0]() is None:
                    break
        is_alive = engines[1]() is not None
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(serving, SECONDS)

    assert is_alive


async def test_a_server_that_waits_for_its_default_has_bounds_and_is_watched_and_leaves_no_lane_if_it_ends(
    tiny_bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, budgets, (port,) = asyncio.Event(), list[MemoryBudget](), free_ports(1)

    def budget(max_bytes: int) -> MemoryBudget:
        budgets.append(MemoryBudget(max_bytes))
        return budgets[-1]

    async def prove(directory: Path, *_: object) -> list[str]:
        if directory.name == "a":
            return []
        await may_end.wait()
        return ["b is bad"]

    monkeypatch.setenv(first_models._PROVES_FIRST, "1")
    monkeypatch.setattr(start_up, "Proofs", lambda: Proofs(prove))

    def stop(catalogue: Catalogue) -> None:
        going_on = [str(task.get_coro()) for task in asyncio.all_tasks(loop) if not task.cancelling()]
        using = [each for each in going_on if "watch_folder" in each or "Health.watch" in each]
        stopped.append((threading.current_thread().name, using))
        stop_engines(catalogue)

    stopped, stop_engines, loop = list[tuple[str, list[str]]](), Catalogue.stop, asyncio.get_running_loop()
    monkeypatch.setattr(Catalogue, "stop", stop)
    monkeypatch.setattr("server.app.MemoryBudget", budget)
    for name in ("a", "b"):
        shutil.copytree(tiny_bundle.directory, tmp_path / "models" / name)
    chosen = settings(tmp_path, models=tmp_path / "models", default="b", health_port=port)
    before = lanes()
    serving = asyncio.create_task(serve(chosen, "1.2.3"))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel, asyncio.timeout(SECONDS):
        for _ in itertools.count():
            with contextlib.suppress(grpc.aio.AioRpcError):  # the health knows no model yet
                answer = await HealthStub(channel).Check(HealthCheckRequest(service="a"), wait_for_ready=True)
                break
            await asyncio.sleep(0.1)
    (memory,) = budgets
    assert answer.status == HealthCheckResponse.NOT_SERVING
    assert memory.max_bytes < process_memory(chosen)
    assert lanes() > before

    may_end.set()
    with pytest.raises(SettingsError, match="--default: b is not served; a are"):
        await asyncio.wait_for(serving, SECONDS)
    assert stopped == [("engine-stop", [])]
    assert lanes() == before


def lanes() -> int:
    return sum(thread.name.startswith("lane-") for thread in threading.enumerate())
