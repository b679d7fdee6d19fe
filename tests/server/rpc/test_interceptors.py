"""Every way in which a call can end, behind a real gRPC server."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub
from prometheus_client.openmetrics import exposition as openmetrics

from protos import translation_pb2 as pb
from protos.translation_pb2_grpc import TranslationServiceStub
from server import errors
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
from server.translation.traffic import Traffic
from server.translation.translator import Translator
from tests.server.conftest import Live
from tests.server.echo_engine import EchoEngine

CANARY = "canary sentence"
REQUEST = pb.TranslateRequest(contents=[CANARY], target_language_code="de")
SECONDS = 20.0  # far above what any of these needs; a hang fails
STREAM_REQUEST = pb.TranslateStreamRequest(request=REQUEST)


def calls(live: Live, **more: Any) -> list[Any]:
    """The same request unary and streamed, as awaitables."""
    return [live.stub.Translate(REQUEST, **more), live.stub.TranslateStream(STREAM_REQUEST, **more).read()]


def raw(live: Live) -> Any:
    """The channel, whose stubs want serialisers that are optional."""
    return live.channel


async def failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def trailing(error: grpc.aio.AioRpcError) -> dict[str, str | bytes]:
    metadata: Any = error.trailing_metadata() or ()
    return dict(metadata)


def count(metrics: Metrics, method: str, code: str) -> float | None:
    return metrics.registry.get_sample_value("babelserve_requests_total", {"method": method, "code": code})


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidRequest("field", "is wrong"),
        errors.Unauthenticated("no key"),
        errors.PermissionDenied("not allowed"),
        errors.ModelNotFound("no such model"),
        errors.Overloaded("queue is full", "sentences"),
        errors.NotServing("stopping"),
        errors.DeadlineExceeded("too late"),
        errors.EngineFailed("translation failed"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_declared_error_is_answered_with_its_code_and_text(
    live: Live, engine: EchoEngine, metrics: Metrics, error: errors.TranslationError
) -> None:
    engine.refuses = error

    for call in calls(live):
        caught = await failure(call)

        assert caught.code() == grpc.StatusCode[error.code.name]
        assert (caught.details() or "").startswith(str(error))
    assert count(metrics, "Translate", error.code.name) == 1
    assert count(metrics, "TranslateStream", error.code.name) == 1


class Panic(BaseException):
    """As PyO3 derives that of extensions written in Rust."""


@pytest.mark.parametrize("unknown", [ValueError, Panic])
async def test_an_unknown_exception_is_answered_with_fixed_words_and_the_request_id(
    live: Live, engine: EchoEngine, caplog: pytest.LogCaptureFixture, unknown: type[BaseException]
) -> None:
    engine.fails = lambda _: unknown(CANARY)

    for call in calls(live, metadata=(("x-request-id", "my-id"),)):
        caught = await failure(call)

        assert caught.code() == grpc.StatusCode.INTERNAL
        assert caught.details() == "internal error; request id my-id"
    assert any(record.exc_info and record.levelno == logging.ERROR for record in caplog.records)


async def test_cancellation_of_the_servers_own_making_is_answered(live: Live, engine: EchoEngine) -> None:
    engine.fails = lambda _: asyncio.CancelledError()

    for call in calls(live):
        assert (await failure(call)).code() == grpc.StatusCode.UNAVAILABLE


async def test_an_overloaded_server_says_when_to_come_back_and_clients_do(live: Live, engine: EchoEngine) -> None:
    engine.refuses = errors.Overloaded("queue is full", "sentences", retry_after_seconds=0.02)
    policy = {
        "maxAttempts": 3,
        "initialBackoff": "30s",
        "maxBackoff": "30s",
        "backoffMultiplier": 1,
        "retryableStatusCodes": ["RESOURCE_EXHAUSTED"],
    }
    config = json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": policy}]})

    caught = await failure(live.stub.Translate(REQUEST))
    async with grpc.aio.insecure_channel(
        f"127.0.0.1:{live.port}", options=[("grpc.service_config", config)]
    ) as channel:
        method = TranslationServiceStub(channel).Translate
        retried = await failure(method(REQUEST, timeout=10))

    assert trailing(caught)["grpc-retry-pushback-ms"] == "20"
    status = trailing(caught)["grpc-status-details-bin"]
    assert isinstance(status, bytes)
    (detail,) = Status.FromString(status).details
    retry = RetryInfo()
    assert detail.Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 20
    assert retried.code() == grpc.StatusCode.RESOURCE_EXHAUSTED  # and not the deadline: no 30 s between attempts


async def test_retries_are_separate_calls_to_the_server(live: Live, engine: EchoEngine, metrics: Metrics) -> None:
    engine.refuses = errors.NotServing("loading")
    policy = {
        "maxAttempts": 3,
        "initialBackoff": "0.01s",
        "maxBackoff": "0.01s",
        "backoffMultiplier": 1,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    config = json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": policy}]})

    async with grpc.aio.insecure_channel(
        f"127.0.0.1:{live.port}", options=[("grpc.service_config", config)]
    ) as channel:
        method = TranslationServiceStub(channel).Translate
        await failure(method(REQUEST))

    assert count(metrics, "Translate", "UNAVAILABLE") == 3


@pytest.mark.parametrize("identity", ["a", "A-b_c.9", "x" * 64])
async def test_a_plain_request_id_comes_back(live: Live, identity: str) -> None:
    call = live.stub.Translate(REQUEST, metadata=(("x-request-id", identity),))
    stream = live.stub.TranslateStream(STREAM_REQUEST, metadata=(("x-request-id", identity),))

    assert dict(await call.initial_metadata())["x-request-id"] == identity
    assert dict(await stream.initial_metadata())["x-request-id"] == identity
    await stream.read()


@pytest.mark.parametrize("identity", ["", "x" * 65, 'a"b', "a b", "a/b"])
async def test_any_other_request_id_is_replaced(live: Live, engine: EchoEngine, identity: str) -> None:
    call = live.stub.Translate(REQUEST, metadata=(("x-request-id", identity),))
    given = str(dict(await call.initial_metadata())["x-request-id"])
    engine.refuses = errors.NotServing("stopping")
    error = await failure(live.stub.Translate(REQUEST, metadata=(("x-request-id", identity),)))

    assert given != identity
    assert len(given) == 32
    assert len(trailing(error)["x-request-id"]) == 32


async def test_one_log_line_ends_each_call_and_holds_no_text(
    live: Live, engine: EchoEngine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await live.stub.Translate(REQUEST)
        engine.refuses = errors.Overloaded("queue is full", "sentences")
        await failure(live.stub.Translate(REQUEST))
        engine.refuses = None
        engine.fails = lambda _: errors.EngineFailed("translation failed")
        await failure(live.stub.TranslateStream(STREAM_REQUEST).read())

    records = [record for record in caplog.records if record.message == "request"]
    facts = [vars(record)["facts"] for record in records]
    assert [(each["method"], each["code"]) for each in facts] == [
        ("Translate", "OK"),
        ("Translate", "RESOURCE_EXHAUSTED"),
        ("TranslateStream", "INTERNAL"),
    ]
    assert [record.levelno for record in records] == [logging.INFO, logging.WARNING, logging.ERROR]
    assert facts[0]["texts"] == facts[0]["sentences"] == 1
    assert facts[0]["source_tokens"] == facts[0]["target_tokens"] > 0
    assert CANARY not in caplog.text
    assert CANARY not in str(facts)


@pytest.mark.parametrize(
    ("traceparent", "trace_id"),
    [
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"),
        (CANARY, None),
    ],
)
async def test_a_callers_trace_is_logged_and_an_exemplar_if_it_is_one(
    live: Live, metrics: Metrics, caplog: pytest.LogCaptureFixture, traceparent: str, trace_id: str | None
) -> None:
    with caplog.at_level(logging.INFO):
        await live.stub.Translate(REQUEST, metadata=(("traceparent", traceparent),))

    (record,) = [record for record in caplog.records if record.message == "request"]
    assert vars(record)["facts"].get("trace_id") == trace_id
    page: str = openmetrics.generate_latest(metrics.registry).decode()  # type: ignore[no-untyped-call]
    assert page.count(f'{{trace_id="{trace_id}"}}') == (trace_id is not None)
    assert CANARY not in page


async def test_calls_are_counted_by_closed_labels_whatever_clients_send(live: Live, metrics: Metrics) -> None:
    def num_series() -> int:
        return sum(len(family.samples) for family in metrics.registry.collect())

    before = num_series()
    for index in range(20):
        language = pb.TranslateRequest(contents=["x"], target_language_code=f"l{index}", model=f"m{index}")
        await failure(live.stub.Translate(language))
        await failure(raw(live).unary_unary(f"/babelserve.v1.TranslationService/M{index}")(b""))
        await failure(raw(live).unary_unary(f"/s{index}/M")(b""))

    assert num_series() == before
    assert count(metrics, "other", "UNIMPLEMENTED") == 40
    assert count(metrics, "Translate", "NOT_FOUND") == 20


async def test_what_started_has_ended_when_idle(live: Live, engine: EchoEngine, metrics: Metrics) -> None:
    engine.is_holding = True
    call = live.stub.Translate(REQUEST)
    await engine.submitted.wait()

    def value(name: str) -> float | None:
        return metrics.registry.get_sample_value(f"babelserve_{name}", {"method": "Translate"})

    assert (value("requests_started_total"), value("requests_in_flight")) == (1, 1)
    call.cancel()
    await live.traffic.wait_until_idle()
    assert (value("requests_started_total"), value("requests_in_flight")) == (1, 0)
    assert value("request_duration_seconds_count") == 1
    assert count(metrics, "Translate", "CANCELLED") == 1


async def test_a_refusing_server_answers_unavailable(live: Live, engine: EchoEngine) -> None:
    live.traffic.refuse()

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await live.stub.Translate(REQUEST)

    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    assert refusal.value.details() == "the server is shutting down"
    await live.traffic.wait_until_quiet(0.01)


async def test_an_engine_that_hangs_is_answered_at_the_servers_limit(
    live: Live, engine: EchoEngine, metrics: Metrics
) -> None:
    engine.is_holding = True
    live.calls._max_seconds = 0.05

    for call in calls(live):
        caught = await failure(call)

        assert caught.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert "0.05 seconds" in (caught.details() or "")
    assert all(future.cancelled() for future in engine.futures)


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
    access, traffic, health = Access(metrics.access, keys=tmp_path / "keys.toml"), Traffic(), Health(metrics)
    calls = Calls(metrics, traffic, 65.0)
    settings = Settings(port=0, health_port=0, admin_port=0, reflection=True)
    service = TranslationService(translator, Intake(translator.memory, 8))
    servers = open_servers(settings, service, CallInterceptor(calls, access), health, access)
    await servers.start()
    await health.set_serving(True)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{servers.ports[0]}") as channel:
        yield Live(translator, traffic, calls, channel, TranslationServiceStub(channel), servers.ports[0])
    await servers.stop()


async def all_methods(live: Live) -> list[MethodDescriptor]:
    """Every method of every service on the port, as the server itself lists them."""
    call: Any = ServerReflectionStub(live.channel).ServerReflectionInfo(
        iter([ServerReflectionRequest(list_services="")]), metadata=GOOD
    )
    names = [service.name for service in (await call.read()).list_services_response.service]
    return [method for name in names for method in Default().FindServiceByName(name).methods]


def sent(live: Live, method: MethodDescriptor, metadata: Any) -> Any:
    """Calls a method with an empty message; as an awaitable."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    if method.client_streaming:
        return raw(live).stream_stream(path)(iter([b""]), metadata=metadata, timeout=SECONDS).read()
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
    assert len(answers) == 2
    assert set.union(*answers.values()) == {grpc.StatusCode.UNAUTHENTICATED}


async def test_with_a_good_key_the_caller_is_answered_and_named_in_the_log(
    closed: Live, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        response = await closed.stub.Translate(REQUEST, metadata=GOOD)

    assert response.translations[0].text == CANARY
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


async def test_a_call_without_a_message_is_no_request(live: Live) -> None:
    error = await failure(raw(live).stream_unary("/babelserve.v1.TranslationService/Translate")(iter([])))

    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "request: is missing" in (error.details() or "")


async def test_a_quota_that_is_used_up_is_told_with_the_time_to_come_back(closed: Live, metrics: Metrics) -> None:
    await closed.stub.Translate(REQUEST, metadata=GOOD)

    error = await failure(closed.stub.Translate(REQUEST, metadata=GOOD))

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.details() == "the quota of tenant billing is used up"
    assert 0 < int(trailing(error)["grpc-retry-pushback-ms"]) <= 10_000
    labels = {"tenant": "billing", "outcome": "refused"}
    assert metrics.registry.get_sample_value("babelserve_tenant_requests_total", labels) == 1
