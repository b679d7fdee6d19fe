"""The three servers on free ports of the loopback."""

import asyncio
import contextlib
import logging
import socket
import time
from collections import Counter
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

import server.rpc.servers
from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.access.access import Access
from server.errors import SettingsError
from server.rpc.intake import MAX_MESSAGE_BYTES
from server.rpc.servers import RpcServers, address
from server.rpc.service import SERVICE_NAME
from server.telemetry.metrics import Metrics
from server.text.splitter import MAX_TEXT_BYTES
from tests.server.rpc.parts import SECONDS, Open, answer, started

REQUEST = pb.TranslateRequest(contents=["A dog runs."], target_language_code="de")
_GUIDES = ("docs/guides/secure.md", "deploy/README.md", "SECURITY.md")
LIST_SERVICES = ServerReflectionRequest(list_services="")


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
                # The server may refuse a stream before the client has sent its message, which then fails in the client.
                was_unsent = "SendMessageOperation" in (error.debug_error_string() or "")
                if error.code() is not grpc.StatusCode.UNIMPLEMENTED and not was_unsent:
                    raise
        return there


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", "127.0.0.1:1"), ("example.org", "example.org:1"), ("::1", "[::1]:1"), ("::", "[::]:1")],
)
def test_an_address_of_ipv6_is_in_brackets(host: str, expected: str) -> None:
    assert address(host, 1) == expected


def test_guides_say_how_long_a_client_keeps_to_the_servers_that_it_knows() -> None:
    options = dict(server.rpc.servers._OPTIONS)
    age, grace = (options[f"grpc.max_connection_{name}_ms"] // 60_000 for name in ("age", "age_grace"))
    root = Path(__file__).parents[3]
    said = {name: " ".join((root / name).read_text(encoding="utf-8").split()) for name in _GUIDES}

    assert age <= 5  # for so long a replica that has come because of load gets few calls
    assert f"takes calls for {age} minutes at most" in said["docs/guides/secure.md"]
    assert (
        f"ends each after {age} minutes, and calls that run on it have {grace} minutes more" in said["deploy/README.md"]
    )
    assert f"the connection ends, after {age + grace} minutes at most" in said["SECURITY.md"]


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
        assert fault == f"{start} Address already in use"


@pytest.mark.parametrize(
    ("host", "reason"),
    [("192.0.2.1", "Cannot assign requested address"), ("no such host", "Name or service not known")],
)
async def test_an_address_that_is_not_ours_is_told_as_what_it_is(
    opening: Open, host: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SettingsError) as caught:
        opening(host=host)

    assert caught.value.faults[0] == f"--port: cannot listen on {host} port 0: {reason}"
    assert capfd.readouterr().err == ""  # nor by C-core


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


async def test_a_message_that_is_too_long_is_counted_and_logged_as_one(
    opening: Open, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with channel_to(opening()) as channel:
            while not metrics.unread_messages_total._value.get():
                with pytest.raises(grpc.aio.AioRpcError):
                    await translate(channel, bytes(MAX_MESSAGE_BYTES + 1))
                await asyncio.sleep(0.1)  # gRPC tells its caller first, and ends some calls before we hear of them
            await translate(channel, GOOD)

    facts = [vars(record)["facts"] for record in caplog.records if record.message == "request"]
    assert [each.get("unread") for each in facts if each["code"] == "OK"] == [None]
    others = [each for each in facts if each["code"] != "OK"]
    assert {each["code"] for each in others} <= {"CANCELLED", "INVALID_ARGUMENT"}  # what of its end is seen first
    assert {each["unread"] for each in others} == {
        f"the caller left, or its message has more than {MAX_MESSAGE_BYTES} bytes"
    }


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


async def called_while_the_loop_is_held(port: int, num_channels: int, hold: Callable[[list[Any]], None]) -> list[Any]:
    """Makes 1,000 calls over each channel, holds the event loop, and returns the calls once all have ended."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(f"127.0.0.1:{port}", options) for _ in range(num_channels)]
    for channel in channels:
        await asyncio.to_thread(grpc.channel_ready_future(channel).result, SECONDS)
    stubs: list[Any] = [TranslationServiceStub(channel) for channel in channels]
    calls = [stub.ListModels.future(pb.ListModelsRequest(), timeout=SECONDS) for stub in stubs for _ in range(1000)]
    hold(calls)  # the event loop's thread is this one
    await asyncio.to_thread(lambda: [call.code() for call in calls])
    for channel in channels:
        channel.close()
    return calls


async def test_calls_that_come_while_the_event_loop_is_busy_are_all_answered(opening: Open) -> None:
    async with started(opening()) as servers:
        calls = await called_while_the_loop_is_held(servers.ports[0], 2, lambda _: time.sleep(0.5))

    assert {call.code() for call in calls} == {grpc.StatusCode.OK}


async def test_a_flood_that_the_event_loop_cannot_take_is_ended_before_it_is_late(opening: Open) -> None:
    def hold(calls: list[Any]) -> None:
        end = time.monotonic() + SECONDS / 2
        while not any(call.done() for call in calls) and time.monotonic() < end:
            time.sleep(0.01)

    async with started(opening()) as servers:
        calls = await called_while_the_loop_is_held(servers.ports[0], 4, hold)

    counts = Counter(call.code() for call in calls)
    assert set(counts) == {grpc.StatusCode.OK, grpc.StatusCode.CANCELLED}
    assert counts[grpc.StatusCode.OK] >= 2000
