"""The port of HTTP: TLS, certificates that are renewed, and its end."""

import asyncio
import json
import ssl
from pathlib import Path

import pytest

from server.access.access import Access
from server.telemetry.metrics import Metrics
from server.web.serving import HttpServer
from tests.certificates import Issued, authority
from tests.server.echo_engine import EchoEngine
from tests.server.web.client import call, head, read_answer
from tests.server.web.conftest import Connect, OpenSite, Site

REQUEST = {"contents": ["A dog runs."], "targetLanguageCode": "de"}


def trusting(client: Issued | None, tmp_path: Path) -> ssl.SSLContext:
    """The TLS of a caller, which has a certificate or none."""
    context = ssl.create_default_context(cadata=authority().pem.decode())
    if client is not None:
        paths = tmp_path / "client.pem", tmp_path / "client.key"
        paths[0].write_bytes(client.chain)
        paths[1].write_bytes(client.key)
        context.load_cert_chain(*paths)
    return context


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Of a server's certificate."""
    paths = {"tls_cert": tmp_path / "cert.pem", "tls_key": tmp_path / "key.pem"}
    write(paths, authority().issue())
    return paths


def write(paths: dict[str, Path], issued: Issued) -> None:
    paths["tls_cert"].write_bytes(issued.chain)
    paths["tls_key"].write_bytes(issued.key)


async def shown(port: int, context: ssl.SSLContext) -> object:
    """The number of the certificate that a server shows."""
    _, writer = await asyncio.open_connection("localhost", port, ssl=context)
    certificate = writer.get_extra_info("peercert")
    writer.close()
    await writer.wait_closed()
    return certificate["serialNumber"]


async def test_certificates_are_those_in_force(
    opening_http: OpenSite, metrics: Metrics, files: dict[str, Path], tmp_path: Path
) -> None:
    access = Access(metrics.access, **files)
    async with opening_http(access) as site:
        context = trusting(None, tmp_path)
        first = await shown(site.port, context)
        assert (await call(site.port, "GET", "/healthz", context=context)).status == 200
        write(files, authority().issue())
        access.renew(at_once=True)

        assert await shown(site.port, context) != first


async def test_a_client_without_a_certificate_is_refused_and_one_with_it_is_its_tenant(
    opening_http: OpenSite, metrics: Metrics, files: dict[str, Path], tmp_path: Path
) -> None:
    ca, keys = tmp_path / "ca.pem", tmp_path / "keys.toml"
    ca.write_bytes(authority().pem)
    keys.write_text('[tenants.search]\ncommon_names = ["search"]\n')
    async with opening_http(Access(metrics.access, **files, tls_client_ca=ca, keys=keys)) as site:
        search = trusting(authority().issue(common_name="search"), tmp_path)
        other = trusting(authority().issue(common_name="other"), tmp_path)
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await call(site.port, "POST", "/v1/translate", REQUEST, context=trusting(None, tmp_path))

        assert (await call(site.port, "POST", "/v1/translate", REQUEST, context=search)).status == 200
        assert (await call(site.port, "POST", "/v1/translate", REQUEST, context=other)).status == 403
    labels = {"tenant": "search", "outcome": "ok"}
    assert metrics.registry.get_sample_value("babelserve_tenant_requests_total", labels) == 1


async def test_at_the_end_idle_connections_are_closed_and_answers_go_out(
    site: Site, connect: Connect, engine: EchoEngine
) -> None:
    engine.is_holding = True
    idle, _ = await connect(site.port)
    busy, writer = await connect(site.port)
    body = json.dumps(REQUEST).encode()
    writer.write(head("POST", "/v1/translate", {"content-length": str(len(body))}) + body)
    await engine.submitted.wait()
    stopping = asyncio.create_task(site.server.stop())
    assert await idle.read() == b""
    engine.release(0)

    answer = await busy.read()
    await stopping

    assert b"200 OK" in answer
    assert b"connection: close" in answer
    with pytest.raises(ConnectionRefusedError):
        await connect(site.port)


async def test_at_the_end_a_caller_that_has_just_connected_may_send_its_request(site: Site, connect: Connect) -> None:
    reader, writer = await connect(site.port)
    await call(site.port, "GET", "/healthz")  # so the connection before has been accepted
    stopping = asyncio.create_task(site.server.stop())
    await asyncio.sleep(0.3)  # of a busy caller
    writer.write(head("GET", "/healthz", {}))

    answer = await read_answer(reader)
    await stopping

    assert answer.status == 200


async def test_at_the_end_work_that_hangs_read_answer(site: Site, connect: Connect, engine: EchoEngine) -> None:
    engine.is_holding = True
    reader, writer = await connect(site.port)
    body = json.dumps(REQUEST).encode()
    writer.write(head("POST", "/v1/translate", {"content-length": str(len(body))}) + body)
    await engine.submitted.wait()

    await site.server.stop()

    assert site.running.idle_seconds > 0
    assert (await read_answer(reader)).json["error"]["status"] == "UNAVAILABLE"


async def test_a_port_that_is_taken_is_an_os_error_and_an_unused_one_is_given_back(site: Site) -> None:
    async def app(*_: object) -> None: ...

    with pytest.raises(OSError, match="in use"):
        HttpServer(app, "127.0.0.1", site.port, 1)
    unused = HttpServer(app, "127.0.0.1", 0, 1)
    await unused.stop()
    again = HttpServer(app, "127.0.0.1", unused.port, 1)
    await again.stop()
