"""The three servers on free ports of the loopback."""

import contextlib
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_channelz.v1.channelz_pb2 import GetServersRequest
from grpc_channelz.v1.channelz_pb2_grpc import ChannelzStub
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from protos import translation_pb2 as pb
from protos.translation_pb2_grpc import TranslationServiceStub
from server.errors import SettingsError
from server.rpc.health import Health
from server.rpc.interceptors import CallInterceptor
from server.rpc.servers import RpcServers, address, open_servers
from server.rpc.service import TranslationService
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.translation.calls import Calls
from server.translation.traffic import Traffic
from server.translation.translator import Translator

TLS = Path(__file__).parents[2] / "client" / "tls"
REQUEST = pb.TranslateRequest(contents=["A dog runs."], target_language_code="de")
LIST_SERVICES = ServerReflectionRequest(list_services="")
SECONDS = 20.0  # far above what any of these needs; a hang fails

Open = Callable[..., RpcServers]


@pytest.fixture
def opening(translator: Translator, metrics: Metrics) -> Open:
    """Opens servers, on free ports unless it is told others."""

    def opening(**settings: Any) -> RpcServers:
        free = {"port": 0, "health_port": 0, "admin_port": 0}
        interceptor = CallInterceptor(Calls(metrics, Traffic(), SECONDS))
        return open_servers(Settings(**(free | settings)), TranslationService(translator), interceptor, Health(metrics))

    return opening


@contextlib.asynccontextmanager
async def started(servers: RpcServers) -> AsyncIterator[RpcServers]:
    await servers.start()
    try:
        yield servers
    finally:
        await servers.stop()


@contextlib.contextmanager
def taken_port() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


async def services_at(port: int) -> set[str]:
    """Calls a method of each service; returns those that are there."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        reflection: Any = ServerReflectionStub(channel).ServerReflectionInfo(iter([LIST_SERVICES]), timeout=SECONDS)
        calls: dict[str, Any] = {
            "translation": TranslationServiceStub(channel).Translate(REQUEST, timeout=SECONDS),
            "health": HealthStub(channel).Check(HealthCheckRequest(), timeout=SECONDS),
            "channelz": ChannelzStub(channel).GetServers(GetServersRequest(), timeout=SECONDS),
            "reflection": reflection.read(),
        }
        there = set()
        for name, call in calls.items():
            try:
                await call
                there.add(name)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                    raise
        return there


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", "127.0.0.1:1"), ("example.org", "example.org:1"), ("::1", "[::1]:1"), ("::", "[::]:1")],
)
def test_an_address_of_ipv6_is_in_brackets(host: str, expected: str) -> None:
    assert address(host, 1) == expected


@pytest.mark.parametrize("reflection", [False, True])
async def test_each_port_answers_for_its_own_services(opening: Open, reflection: bool) -> None:
    async with started(opening(reflection=reflection)) as servers:
        translation, health, admin = [await services_at(port) for port in servers.ports]

    assert translation == {"translation", "health", *(["reflection"] if reflection else [])}
    assert health == {"health"}
    assert admin == {"channelz"}


async def test_free_ports_are_told_by_their_real_numbers(opening: Open) -> None:
    async with started(opening()) as servers:
        assert len({*servers.ports, 0}) == 4


async def test_every_port_that_is_taken_is_listed(opening: Open) -> None:
    with taken_port() as one, taken_port() as other, pytest.raises(SettingsError) as caught:
        opening(port=one, admin_port=other)

    starts = (
        f"--port: cannot listen on 127.0.0.1 port {one}:",
        f"--admin-port: cannot listen on 127.0.0.1 port {other}:",
    )
    for fault, start in zip(caught.value.faults, starts, strict=True):
        assert fault.startswith(start)


async def test_with_a_certificate_translations_are_encrypted_and_health_is_plain(opening: Open) -> None:
    credentials = grpc.ssl_channel_credentials((TLS / "cert.pem").read_bytes())
    options = [("grpc.ssl_target_name_override", "babelserve.test")]

    async with started(opening(tls_cert=TLS / "cert.pem", tls_key=TLS / "key.pem")) as servers:
        translation, health, _ = servers.ports
        async with grpc.aio.secure_channel(f"127.0.0.1:{translation}", credentials, options) as channel:
            response = await TranslationServiceStub(channel).Translate(REQUEST, timeout=SECONDS)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{translation}") as channel:
            plain = await TranslationServiceStub(channel).Translate(REQUEST, timeout=SECONDS).code()
        plain_health = await services_at(health)

    assert response.translations[0].text == "A dog runs."
    assert plain is grpc.StatusCode.UNAVAILABLE
    assert plain_health == {"health"}


@pytest.mark.parametrize("spoiled", ["cert.pem", "key.pem"])
async def test_a_certificate_or_key_that_is_none_is_a_fault(opening: Open, tmp_path: Path, spoiled: str) -> None:
    for name in ("cert.pem", "key.pem"):
        shutil.copy(TLS / name, tmp_path)
    (tmp_path / spoiled).write_text("no PEM")

    with pytest.raises(SettingsError, match=r"^--tls-cert, --tls-key: are no PEM certificate chain"):
        opening(tls_cert=tmp_path / "cert.pem", tls_key=tmp_path / "key.pem")
