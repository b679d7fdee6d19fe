"""The three servers on free ports of the loopback."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from grpc_channelz.v1.channelz_pb2 import GetServersRequest
from grpc_channelz.v1.channelz_pb2_grpc import ChannelzStub
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

import server.rpc.servers
from protos import translation_pb2 as pb
from protos.translation_pb2_grpc import TranslationServiceStub
from server.access.access import Access
from server.errors import SettingsError
from server.rpc.health import Health
from server.rpc.intake import MAX_MESSAGE_BYTES, Intake
from server.rpc.interceptors import CallInterceptor
from server.rpc.servers import RpcServers, address, open_servers
from server.rpc.service import SERVICE_NAME, TranslationService
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.text.splitter import MAX_TEXT_BYTES
from server.translation.calls import Calls
from server.translation.traffic import Traffic
from server.translation.translator import Translator
from tests.certificates import Authority, Issued, authority

REQUEST = pb.TranslateRequest(contents=["A dog runs."], target_language_code="de")
LIST_SERVICES = ServerReflectionRequest(list_services="")
SECONDS = 20.0  # far above what any of these needs; a hang fails

Open = Callable[..., RpcServers]


@pytest.fixture
def opening(translator: Translator, metrics: Metrics) -> Open:
    """Opens servers, on free ports unless it is told others."""

    def opening(access: Access | None = None, **settings: Any) -> RpcServers:
        free = {"port": 0, "health_port": 0, "admin_port": 0}
        access = access or Access(metrics.access)
        service = TranslationService(translator, Intake(translator.memory, 8))
        interceptor = CallInterceptor(Calls(metrics, Traffic(), SECONDS), access)
        return open_servers(Settings(**(free | settings)), service, interceptor, Health(metrics), access)

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


async def test_with_a_certificate_translations_are_encrypted_and_health_is_plain(
    opening: Open, metrics: Metrics, tls: dict[str, Path]
) -> None:
    access = Access(metrics.access, tls_cert=tls["tls_cert"], tls_key=tls["tls_key"])

    async with started(opening(access)) as servers:
        translation, health, _ = servers.ports
        encrypted = await answer(translation)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{translation}") as channel:
            plain = await TranslationServiceStub(channel).Translate(REQUEST, timeout=SECONDS).code()
        plain_health = await services_at(health)

    assert encrypted is grpc.StatusCode.OK
    assert plain is grpc.StatusCode.UNAVAILABLE
    assert plain_health == {"health"}


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, Path]:
    """Files of a server for localhost that knows the authority of its clients."""
    paths = {name: tmp_path / name for name in ("tls_cert", "tls_key", "tls_client_ca")}
    write_certificate(paths, authority().issue())
    paths["tls_client_ca"].write_bytes(authority().pem)
    return paths


def write_certificate(paths: dict[str, Path], issued: Issued) -> None:
    paths["tls_cert"].write_bytes(issued.chain)
    paths["tls_key"].write_bytes(issued.key)


async def answer(port: int, client: Issued | None = None, *, trusted: bytes | None = None) -> grpc.StatusCode:
    """Calls over a connection of its own; by default trusts the authority that all tests share."""
    credentials = grpc.ssl_channel_credentials(
        trusted or authority().pem, client.key if client else None, client.chain if client else None
    )
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials, options) as channel:
        call: Any = TranslationServiceStub(channel).Translate(REQUEST, timeout=SECONDS)
        code: grpc.StatusCode = await call.code()
        return code


async def test_a_client_with_a_certificate_of_the_authority_is_answered(
    opening: Open, metrics: Metrics, tls: dict[str, Path]
) -> None:
    async with started(opening(Access(metrics.access, **tls))) as servers:
        assert await answer(servers.ports[0], authority().issue("client", ())) is grpc.StatusCode.OK


async def test_a_client_with_any_other_certificate_or_none_is_refused(
    opening: Open, metrics: Metrics, tls: dict[str, Path]
) -> None:
    foreign = Authority()
    clients = {
        "none": None,
        "expired": authority().issue("client", (), ends=-1),
        "not begun": authority().issue("client", (), begins=1),
        "foreign": foreign.issue("client", ()),
        "of an authority of the same name": Authority("authority").issue("client", ()),
        "self-signed": foreign.issue("authority", (), is_authority=True),
    }

    async with started(opening(Access(metrics.access, **tls))) as servers:
        answers = {name: await answer(servers.ports[0], client) for name, client in clients.items()}

    assert answers == dict.fromkeys(clients, grpc.StatusCode.UNAVAILABLE)


async def test_a_client_finds_a_server_of_another_name_or_authority_out(
    opening: Open, metrics: Metrics, tls: dict[str, Path]
) -> None:
    client = authority().issue("client", ())
    async with started(opening(Access(metrics.access, **tls))) as servers:
        foreign = await answer(servers.ports[0], client, trusted=Authority().pem)
    write_certificate(tls, authority().issue("server", [x509.DNSName("elsewhere.example.org")]))
    async with started(opening(Access(metrics.access, **tls))) as servers:
        elsewhere = await answer(servers.ports[0], client)

    assert {foreign, elsewhere} == {grpc.StatusCode.UNAVAILABLE}


@pytest.mark.parametrize(("version", "is_spoken"), [("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_is_spoken_from_1_2_on(
    opening: Open, metrics: Metrics, tls: dict[str, Path], version: str, is_spoken: bool
) -> None:
    del tls["tls_client_ca"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority().pem.decode())
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # or this client would not speak 1.1 itself
    context.set_alpn_protocols(["h2"])
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]

    async with started(opening(Access(metrics.access, **tls))) as servers:
        try:
            _, writer = await asyncio.open_connection("localhost", servers.ports[0], ssl=context)
        except (ssl.SSLError, ConnectionError):
            assert not is_spoken
        else:
            assert is_spoken
            writer.transport.abort()  # gRPC would not shut TLS down in turn


async def test_under_load_new_certificates_are_shown_without_an_error(
    opening: Open, metrics: Metrics, tls: dict[str, Path]
) -> None:
    client, foreign = authority().issue("client", ()), Authority()
    answers: list[grpc.StatusCode] = []

    async def call_until(renewed: asyncio.Event, port: int) -> None:
        while not renewed.is_set():
            answers.append(await answer(port, client))

    access = Access(metrics.access, **tls)
    async with started(opening(access)) as servers:
        renewed, port = asyncio.Event(), servers.ports[0]
        callers = [asyncio.create_task(call_until(renewed, port)) for _ in range(4)]
        for _ in range(3):
            write_certificate(tls, authority().issue())
            access.renew(at_once=True)
            await answer(port, client)
        renewed.set()
        await asyncio.gather(*callers)
        write_certificate(tls, foreign.issue())  # nobody trusts it: those who still can connect are shown the old one
        shown_foreign = await answer(port, client)
        access.renew(at_once=True)
        after = await answer(port, client)

    assert answers
    assert set(answers) == {grpc.StatusCode.OK}
    assert (shown_foreign, after) == (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE)


async def test_a_bad_new_certificate_is_never_shown(opening: Open, metrics: Metrics, tls: dict[str, Path]) -> None:
    client = authority().issue("client", ())
    good, expired = authority().issue(), authority().issue(ends=-1)
    codes = []

    access = Access(metrics.access, **tls)
    async with started(opening(access)) as servers:
        for chain, key in ((b"no PEM", good.key), (good.chain, expired.key), (expired.chain, expired.key)):
            tls["tls_cert"].write_bytes(chain)
            tls["tls_key"].write_bytes(key)
            access.renew(at_once=True)
            codes.append(await answer(servers.ports[0], client))

    assert codes == [grpc.StatusCode.OK] * 3


@contextlib.asynccontextmanager
async def channel_to(servers: RpcServers, compression: grpc.Compression | None = None) -> AsyncIterator[Any]:
    """Starts the servers; yields a channel to that for translations."""
    async with (
        started(servers),
        grpc.aio.insecure_channel(f"127.0.0.1:{servers.ports[0]}", compression=compression) as channel,
    ):
        yield channel


def translate(channel: Any, payload: bytes, num_metadata_bytes: int = 0) -> Any:
    """Calls Translate with a message's bytes."""
    call = channel.unary_unary(f"/{SERVICE_NAME}/Translate")
    return call(payload, metadata=(("x-more", "x" * num_metadata_bytes),), timeout=SECONDS)


GOOD = REQUEST.SerializeToString()
ONE_TEXT = pb.TranslateRequest(contents=["x"]).SerializeToString()
TOO_LONG = pb.TranslateRequest(contents=["x" * (MAX_TEXT_BYTES + 1)], target_language_code="de").SerializeToString()
INVALID, EXHAUSTED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("payload", "num_metadata_bytes", "code", "named"),
    [
        pytest.param(b"", 0, INVALID, ["contents", "1024", "not 0"], id="no text"),
        pytest.param(ONE_TEXT * 100_000, 0, INVALID, ["contents", "1024", "not 100000"], id="too many texts"),
        pytest.param(TOO_LONG, 0, INVALID, [f"{MAX_TEXT_BYTES} bytes", f"not {MAX_TEXT_BYTES + 1}"], id="a long text"),
        pytest.param(bytes(MAX_MESSAGE_BYTES), 0, INVALID, ["protobuf"], id="the largest message"),
        pytest.param(bytes(MAX_MESSAGE_BYTES + 1), 0, EXHAUSTED, [str(MAX_MESSAGE_BYTES)], id="a larger message"),
        pytest.param(GOOD, 32 << 10, EXHAUSTED, ["metadata"], id="too much metadata"),
    ],
)
async def test_what_is_too_large_is_refused_and_the_next_call_answered(
    opening: Open, payload: bytes, num_metadata_bytes: int, code: grpc.StatusCode, named: list[str]
) -> None:
    async with channel_to(opening()) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await translate(channel, payload, num_metadata_bytes)
        await translate(channel, GOOD)

    assert caught.value.code() is code
    assert [word for word in named if word not in (caught.value.details() or "")] == []


async def test_a_message_that_decompresses_to_too_much_is_refused(opening: Open) -> None:
    async with channel_to(opening(), grpc.Compression.Gzip) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await translate(channel, bytes(8 * MAX_MESSAGE_BYTES))  # 64 KiB on the wire
        await translate(channel, GOOD)

    assert caught.value.code() is EXHAUSTED
    assert "larger than max" in (caught.value.details() or "")


async def test_connections_that_idle_on_one_port_leave_files_for_the_others(
    opening: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.rpc.servers, "raise_file_limit", lambda: 64)

    def connect(port: int) -> list[socket.socket]:
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
        for each in idle:
            each.settimeout(SECONDS)
        return idle

    async with started(opening()) as servers:
        idle = await asyncio.to_thread(connect, servers.ports[0])
        greeted = await asyncio.to_thread(lambda: [each.recv(1) for each in idle])
        health = await services_at(servers.ports[1])
        for each in idle:
            each.close()

    assert sum(map(bool, greeted)) == 24
    assert health == {"health"}


def test_too_few_files_are_a_fault(opening: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.rpc.servers, "raise_file_limit", lambda: 32)

    with pytest.raises(SettingsError, match=r"^open files: the limit is 32; at least 64 are needed"):
        opening()


async def test_calls_that_come_while_the_event_loop_is_busy_are_all_answered(opening: Open) -> None:
    async with started(opening()) as servers:
        channels = [
            grpc.insecure_channel(f"127.0.0.1:{servers.ports[0]}", [("grpc.use_local_subchannel_pool", 1)])
            for _ in range(4)
        ]
        for channel in channels:
            await asyncio.to_thread(grpc.channel_ready_future(channel).result, SECONDS)
        stubs: list[Any] = [TranslationServiceStub(channel) for channel in channels]
        calls = [stub.ListModels.future(pb.ListModelsRequest(), timeout=SECONDS) for stub in stubs for _ in range(900)]
        time.sleep(0.5)  # noqa: ASYNC251  # the event loop's thread is this one
        codes = await asyncio.to_thread(lambda: {call.code() for call in calls})
        for channel in channels:
            channel.close()

    assert codes == {grpc.StatusCode.OK}
