"""Certificates, before a real server."""

import asyncio
import ssl
from pathlib import Path

import grpc
import pytest
from cryptography import x509

from babelserve.v1 import translation_pb2 as pb
from server.access.access import Access
from server.telemetry.metrics import Metrics
from tests.certificates import Authority, authority
from tests.server.rpc.parts import Open, answer, started, write_certificate

REQUEST = pb.TranslateRequest(contents=["A dog runs."], target_language_code="de")


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
