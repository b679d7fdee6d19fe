"""What a server that wants API keys answers, behind a real gRPC server with all that its public port may have."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server.access.access import Access
from server.access.keys import hash_key
from server.rpc.health import Health
from server.rpc.intake import Intake
from server.rpc.interceptors import CallInterceptor
from server.rpc.servers import open_servers
from server.rpc.service import TranslationService
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.translation.calls import Calls
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from tests.server.conftest import Live
from tests.server.rpc.parts import REQUEST, SECONDS, SECRET, count, failure, raw, trailing

GOOD = (("authorization", "Bearer good"),)
WRONG = {
    "none": (),
    "wrong": (("authorization", "Bearer wrong"),),
    "expired": (("x-api-key", "expired"),),
    "of another server": (("authorization", "Bearer good2"),),
    "another scheme": (("authorization", "Basic good"),),
}


@pytest_asyncio.fixture
async def closed(metrics: Metrics, translator: Translator, tmp_path: Path) -> AsyncIterator[Live]:
    """A server with everything that the public port may have, which wants a key."""
    keys = {"good": "", "expired": ", expires = 2026-01-01T00:00:00Z"}
    hashes = [f'{{ sha256 = "{hash_key(key).hex()}"{expires} }}' for key, expires in keys.items()]
    (tmp_path / "keys.toml").write_text(
        f"[tenants.billing]\nquota = {{ rate = 10, burst = 1 }}\nkeys = [{', '.join(hashes)}]"
    )
    access, running, health = Access(metrics.access, keys=tmp_path / "keys.toml"), RunningCalls(), Health(metrics)
    calls = Calls(metrics, running, 65.0)
    settings = Settings(port=0, health_port=0, admin_port=0, reflection=True)
    service = TranslationService(translator, Intake(translator.memory, 8), running)
    servers = open_servers(settings, service, CallInterceptor(calls, access), health, access)
    await servers.start()
    health.set_serving(True)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{servers.ports[0]}") as channel:
        yield Live(translator, running, calls, channel, TranslationServiceStub(channel), servers.ports[0])
    await servers.stop()


async def all_methods(live: Live) -> list[MethodDescriptor]:
    """Every method of every service on the port, as the server itself lists them."""
    call: Any = ServerReflectionStub(live.channel).ServerReflectionInfo(
        iter([ServerReflectionRequest(list_services="")]), metadata=GOOD
    )
    names = [service.name for service in (await call.read()).list_services_response.service]
    return [method for name in names for method in Default().FindServiceByName(name).methods]


def sent(live: Live, method: MethodDescriptor, metadata: Any) -> Any:
    """Calls a method with an empty message, a stream of messages with none; as an awaitable.

    If a call ends while a message of a stream is sent, gRPC's client has an error of its own in the status' place.
    """
    path = f"/{method.containing_service.full_name}/{method.name}"
    if method.client_streaming:
        return raw(live).stream_stream(path)(metadata=metadata, timeout=SECONDS).read()
    if method.server_streaming:
        return raw(live).unary_stream(path)(b"", metadata=metadata, timeout=SECONDS).read()
    return raw(live).unary_unary(path)(b"", metadata=metadata, timeout=SECONDS)


@pytest.mark.parametrize("metadata", WRONG.values(), ids=WRONG.keys())
async def test_without_a_good_key_every_method_but_health_is_refused(closed: Live, metadata: Any) -> None:
    methods = await all_methods(closed)
    answers: dict[str, set[grpc.StatusCode]] = {}
    for method in methods:
        try:
            await sent(closed, method, metadata)
            code = grpc.StatusCode.OK
        except grpc.aio.AioRpcError as error:
            code = error.code()
        answers.setdefault(method.containing_service.full_name, set()).add(code)

    assert len(methods) >= 6
    assert grpc.StatusCode.OK in (health := answers.pop("grpc.health.v1.Health"))
    assert grpc.StatusCode.UNAUTHENTICATED not in health
    assert len(answers) == 3, "both services, and reflection"
    assert set.union(*answers.values()) == {grpc.StatusCode.UNAUTHENTICATED}


async def test_with_a_good_key_the_caller_is_answered_and_named_in_the_log(
    closed: Live, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        response = await closed.stub.Translate(REQUEST, metadata=GOOD)

    assert response.translations[0].text == SECRET
    (facts,) = [vars(record)["facts"] for record in caplog.records if record.getMessage() == "request"]
    assert facts["tenant"] == "billing"
    labels = {"tenant": "billing", "outcome": "ok"}
    assert metrics.registry.get_sample_value("babelserve_tenant_requests_total", labels) == 1


async def test_who_is_refused_is_told_why_counted_and_logged_without_the_key(
    closed: Live, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "a-key-that-nobody-may-see"
    with caplog.at_level(logging.DEBUG):
        error = await failure(closed.stub.Translate(REQUEST, metadata=(("authorization", f"Bearer {secret}"),)))

    assert error.details() == "the API key is not known here"
    assert trailing(error)["x-request-id"]
    assert count(metrics, "Translate", "UNAUTHENTICATED") == 1
    assert secret not in caplog.text
    assert secret not in repr([vars(record) for record in caplog.records])


async def test_who_is_refused_need_not_send_the_body_first(closed: Live) -> None:
    async def endless() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    call = raw(closed).stream_unary("/babelserve.v1.TranslationService/Translate")(endless())

    error = await asyncio.wait_for(failure(call), SECONDS)

    assert error.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_quota_that_is_used_up_is_told_with_the_time_to_come_back(closed: Live, metrics: Metrics) -> None:
    await closed.stub.Translate(REQUEST, metadata=GOOD)

    error = await failure(closed.stub.Translate(REQUEST, metadata=GOOD))

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.details() == "the quota of tenant billing is used up"
    assert 0 < int(trailing(error)["grpc-retry-pushback-ms"]) <= 10_000
    labels = {"tenant": "billing", "outcome": "refused"}
    assert metrics.registry.get_sample_value("babelserve_tenant_requests_total", labels) == 1
