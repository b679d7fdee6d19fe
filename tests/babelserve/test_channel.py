"""How the server is reached: retries, keys, health, TLS."""

import contextlib
from pathlib import Path

import grpc
import pytest

from babelserve import AsyncClient, Client
from babelserve.channel import TlsOptions
from babelserve.errors import (
    Overloaded,
    Unavailable,
)
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService

TLS = Path(__file__).parent / "tls"


def test_unavailable_is_retried(client: Client, service: ScriptedService) -> None:
    service.failures.extend([(grpc.StatusCode.UNAVAILABLE, "draining", ())] * 3)

    assert client.translate(["a"], target="de").translations[0].text == "A"
    assert service.num_attempts == 4
    assert service.metadata[-1]["grpc-previous-rpc-attempts"] == "3"


def test_a_large_request_is_retried_too(client: Client, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.UNAVAILABLE, "draining", ()))

    assert len(client.translate(["a" * 2**20], target="de").translations[0].text) == 2**20


def test_overload_is_retried_after_the_servers_pushback(client: Client, service: ScriptedService) -> None:
    pushback = (("grpc-retry-pushback-ms", "1"),)
    service.failures.extend([(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", pushback)] * 2)

    client.translate(["a"], target="de")

    assert service.num_attempts == 3


def test_a_negative_pushback_forbids_retries(client: Client, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.RESOURCE_EXHAUSTED, "full", (("grpc-retry-pushback-ms", "-1"),)))

    with pytest.raises(Overloaded, match="full") as caught:
        client.translate(["a"], target="de")

    assert service.num_attempts == 1
    assert caught.value.retry_after_seconds is None


def test_retries_can_be_switched_off(server: ScriptedServer, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.UNAVAILABLE, "draining", ()))

    with Client(server.address, max_attempts=1) as client, pytest.raises(Unavailable, match="draining"):
        client.translate(["a"], target="de")

    assert service.num_attempts == 1


async def test_an_api_key_goes_with_every_call(server: ScriptedServer, service: ScriptedService) -> None:
    with Client(server.address, api_key="secret") as client:
        client.translate(["a"], target="de")
        list(client.translate_stream(["a"], target="de"))
    async with AsyncClient(server.address, api_key="secret") as asynchronous:
        await asynchronous.translate(["a"], target="de")

    assert [metadata.get("authorization") for metadata in service.metadata] == ["Bearer secret"] * 3


def test_without_an_api_key_none_is_sent(client: Client, service: ScriptedService) -> None:
    client.translate(["a"], target="de")

    assert "authorization" not in service.metadata[0]


@pytest.mark.parametrize("key", ["", " ", "two\nlines", "sch\xf6n"])
def test_an_api_key_that_no_header_can_carry_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ValueError, match=r"^an API key must be printable ASCII$"):
        Client("localhost:1", api_key=key)


def test_a_server_that_is_not_serving_gets_no_calls(server: ScriptedServer, service: ScriptedService) -> None:
    server.set_serving(False)

    with Client(server.address) as client, pytest.raises(Unavailable):
        client.translate(["a"], target="de")

    assert service.num_attempts == 0


def test_a_client_that_does_not_watch_health_calls_all_the_same(server: ScriptedServer) -> None:
    server.set_serving(False)

    with Client(server.address, watch_health=False) as client:
        result = client.translate(["a"], target="de")

    assert result.translations[0].text == "A"


async def test_so_does_an_asynchronous_one(server: ScriptedServer) -> None:
    server.set_serving(False)

    async with AsyncClient(server.address, watch_health=False) as client:
        result = await client.translate(["a"], target="de")

    assert result.translations[0].text == "A"


def test_tls_with_a_name_of_its_own() -> None:
    certificate, key = (TLS / "cert.pem").read_bytes(), (TLS / "key.pem").read_bytes()
    server = ScriptedServer(grpc.ssl_server_credentials([(key, certificate)]))
    tls = TlsOptions(ca_file=TLS / "cert.pem", server_name="babelserve.test")

    with contextlib.closing(server), Client(server.address, tls=tls) as client:
        assert client.translate(["a"], target="de").translations[0].text == "A"


def test_a_server_that_nobody_vouches_for_is_refused() -> None:
    certificate, key = (TLS / "cert.pem").read_bytes(), (TLS / "key.pem").read_bytes()
    server = ScriptedServer(grpc.ssl_server_credentials([(key, certificate)]))

    with contextlib.closing(server), Client(server.address, tls=TlsOptions()) as client, pytest.raises(Unavailable):
        client.translate(["a"], target="de")


def test_arguments_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="max_attempts"):
        Client("localhost:1", max_attempts=6)
    with pytest.raises(ValueError, match="together"):
        Client("localhost:1", tls=TlsOptions(key_file=TLS / "key.pem"))
