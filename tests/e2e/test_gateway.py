"""A gateway in a process of its own, before a server in another: TLS on both sides, its end, and the server's."""

import asyncio
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.server_process import running_server
from tests.certificates import Issued, authority
from tests.chaos.http1 import connect_http
from tests.chaos.journal import OK
from tests.chaos.observations import metric
from tests.chaos.servers import Spec, replicas
from tests.chaos.texts import draw_sentences
from tests.chaos.web_callers import HttpCallers
from tests.fronts.gateway_process import Gateway, started_gateway
from tests.server.web.client import call
from tests.server.web.forms import form

REQUEST = {"contents": ["A dog runs."], "targetLanguageCode": "de"}
DRAIN_SECONDS = 1.0
LINES = draw_sentences(1000)  # of a document


@dataclass(frozen=True, slots=True)
class Files:
    """The paths of a certificate and its key; `flags` gives them to a process."""

    chain: Path
    key: Path

    def write(self, issued: Issued) -> None:
        self.chain.write_bytes(issued.chain)
        self.key.write_bytes(issued.key)

    def flags(self, name: str) -> list[str]:
        return [f"--{name}-cert", str(self.chain), f"--{name}-key", str(self.key)]


def files(folder: Path, name: str, issued: Issued) -> Files:
    made = Files(folder / f"{name}.pem", folder / f"{name}.key")
    made.write(issued)
    return made


async def translated(gateway: Gateway) -> int:
    """The status of a translation."""
    return (await call(gateway.port, "POST", "/v1/translate", REQUEST, context=gateway.context)).status


async def test_certificates_of_both_sides_are_renewed_while_it_serves(tmp_path: Path) -> None:
    ca, keys = tmp_path / "ca.pem", tmp_path / "keys.toml"
    ca.write_bytes(authority().pem)
    keys.write_text('[tenants.old]\ncommon_names = ["old"]\n[tenants.new]\ncommon_names = ["new"]\n')
    own, shown = (files(tmp_path, name, authority().issue(common_name="old")) for name in ("own", "shown"))
    server_flags = [*own.flags("tls"), "--tls-client-ca", str(ca), "--keys", str(keys)]
    context = ssl.create_default_context(cafile=str(ca))
    with running_server([*server_flags, "--lanes", "1"]) as server:
        flags = ["--server-ca", str(ca), *shown.flags("server"), *own.flags("tls")]
        with started_gateway(f"localhost:{server.port}", *flags, context=context) as gateway:
            gateway.wait_for_health(200)
            assert await translated(gateway) == 200
            shown.write(authority().issue(common_name="new"))
            own.write(authority().issue())
            gateway.process.send_signal(signal.SIGHUP)
            async with asyncio.timeout(20):
                while not metric(server, "tenant_requests_total", tenant="new"):
                    assert await translated(gateway) == 200
            assert 'babelserve_reloads_total{files="server-certificates",outcome="ok"} 1.0' in gateway.metrics()


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
async def test_at_its_end_no_call_is_lost(name: signal.Signals) -> None:
    with replicas(1, Spec(step_seconds=0.02)) as group:
        with started_gateway(group.addresses[0], "--drain-delay", "4") as gateway:
            gateway.wait_for_health(200)
            callers = HttpCallers(await connect_http(f"127.0.0.1:{gateway.port}"))
            load = asyncio.create_task(callers.open(50.0, 60.0))
            await asyncio.sleep(1.0)
            gateway.process.send_signal(name)
            await asyncio.sleep(0.5)
            health = await asyncio.to_thread(gateway.health)
            num_before = len(callers.journal.entries)
            code = await asyncio.to_thread(gateway.process.wait, 60)
            load.cancel()
            await callers.settled()
        metrics = metric(group.servers[0], "requests_in_flight")
    entries = callers.journal.entries
    assert (code, metrics) == (0, 0)
    assert callers.journal.faults([OK, "UNAVAILABLE"]) == []
    if name == signal.SIGTERM:  # Ctrl-C refuses at once
        assert health == 503
        assert [entry.outcome for entry in entries[:num_before] if entry.outcome != OK] == []


async def test_of_two_replicas_one_may_be_stopped_or_killed() -> None:
    flags = ["--drain-delay", str(DRAIN_SECONDS)]
    with replicas(2, Spec(step_seconds=0.02), flags) as group:
        target = "ipv4:" + ",".join(group.addresses)
        with started_gateway(target) as gateway:
            gateway.wait_for_health(200)
            callers = HttpCallers(await connect_http(f"127.0.0.1:{gateway.port}"))
            load = asyncio.create_task(callers.open(50.0, 60.0))
            await asyncio.sleep(1.0)
            await asyncio.to_thread(group.servers[0].stop)
            await asyncio.to_thread(group.start(0).wait_until_serving)
            async with asyncio.timeout(30.0):  # of the load
                while not await asyncio.to_thread(  # noqa: ASYNC110 # nothing tells when the gateway has found it again
                    metric, group.servers[0], "requests_started_total"
                ):
                    await asyncio.sleep(0.1)
            group.servers[1].process.kill()
            await asyncio.sleep(1.0)
            load.cancel()
            await callers.settled()

    assert callers.journal.faults([OK]) == []
    assert len(callers.journal.entries) > 100


async def test_a_server_that_starts_anew_is_found_again() -> None:
    with replicas(1) as group, started_gateway(group.addresses[0]) as gateway:
        gateway.wait_for_health(200)
        group.servers[0].stop()
        gateway.wait_for_health(503, 10)
        assert await translated(gateway) == 503
        group.start(0).wait_until_serving()
        gateway.wait_for_health(200, 10)

        assert await translated(gateway) == 200


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGKILL])
async def test_a_document_outlives_the_server_that_translates_it(name: signal.Signals) -> None:
    with (
        replicas(2, Spec(step_seconds=0.02), ["--drain-delay", str(DRAIN_SECONDS)]) as group,
        started_gateway("ipv4:" + ",".join(group.addresses)) as gateway,
    ):
        path = await begun_document(gateway)
        document = await document_after(gateway, path, lambda each: each["translatedTexts"])
        (busy,) = (each for each in group.servers if metric(each, "requests_in_flight"))
        busy.process.send_signal(name)
        num_before = document["translatedTexts"]
        document = await document_after(gateway, path, lambda each: each["state"] != "TRANSLATING")
        result = await call(gateway.port, "GET", f"{path}/file")

    assert num_before < len(LINES)
    assert (document["state"], document["translatedTexts"]) == ("DONE", len(LINES)), document
    assert len(result.body.decode().splitlines()) == len(LINES)


async def test_a_document_waits_for_its_only_server() -> None:
    with (
        replicas(1, Spec(step_seconds=0.02), ["--drain-delay", str(DRAIN_SECONDS)]) as group,
        started_gateway(group.addresses[0]) as gateway,
    ):
        path = await begun_document(gateway)
        await asyncio.to_thread(group.servers[0].stop)
        meanwhile = await call(gateway.port, "GET", path)
        await asyncio.to_thread(group.start(0).wait_until_serving)
        document = await document_after(gateway, path, lambda each: each["state"] != "TRANSLATING")

    assert (meanwhile.status, meanwhile.json["state"]) == (200, "TRANSLATING")
    assert (document["state"], document["translatedTexts"]) == ("DONE", len(LINES)), document


async def test_a_gateway_that_ends_translates_no_document_to_its_end() -> None:
    flags = ["--drain-delay", str(DRAIN_SECONDS), "--drain-timeout", "3000"]
    with replicas(1, Spec(step_seconds=1.0)) as group, started_gateway(group.addresses[0], *flags) as gateway:
        await begun_document(gateway)
        gateway.process.send_signal(signal.SIGTERM)

        assert await asyncio.to_thread(gateway.process.wait, 60) == 0


async def begun_document(gateway: Gateway) -> str:
    """Has a gateway translate a document of many lines. Returns its path."""
    gateway.wait_for_health(200)
    body, headers = form({"sourceLanguageCode": "en", "targetLanguageCode": "de"}, "a.txt", "\n".join(LINES).encode())
    document = (await call(gateway.port, "POST", "/v1/documents", body, headers)).json
    path = f"/v1/documents/{document['id']}"
    await document_after(gateway, path, lambda each: each["state"] != "QUEUED")
    return path


async def document_after(gateway: Gateway, path: str, is_so: Callable[[Any], Any]) -> Any:
    """Returns what a gateway says of a document when this is so."""
    document = (await call(gateway.port, "GET", path)).json
    while not is_so(document):
        await asyncio.sleep(0.05)
        document = (await call(gateway.port, "GET", path)).json
    return document
