"""Every way in which a call can end, behind a real gRPC server."""

import asyncio
import json
import logging
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from prometheus_client.openmetrics import exposition as openmetrics

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from server import errors
from server.telemetry.metrics import Metrics
from tests.server.conftest import Live
from tests.server.echo_engine import EchoEngine
from tests.server.rpc.parts import REQUEST, SECRET, STREAM_REQUEST, count, failure, raw, trailing


def calls(live: Live, **more: Any) -> list[Any]:
    """The same request unary and streamed, as awaitables."""
    return [live.stub.Translate(REQUEST, **more), live.stub.TranslateStream(STREAM_REQUEST, **more).read()]


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
    engine.fails = lambda _: unknown(SECRET)

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

    assert dict(await call.trailing_metadata())["x-request-id"] == identity
    assert "x-request-id" not in dict(await call.initial_metadata()), "a call that is committed is not retried"
    assert dict(await stream.initial_metadata())["x-request-id"] == identity
    await stream.read()


@pytest.mark.parametrize("identity", ["", "x" * 65, 'a"b', "a b", "a/b"])
async def test_any_other_request_id_is_replaced(live: Live, engine: EchoEngine, identity: str) -> None:
    call = live.stub.Translate(REQUEST, metadata=(("x-request-id", identity),))
    given = str(dict(await call.trailing_metadata())["x-request-id"])
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
    assert SECRET not in caplog.text
    assert SECRET not in str(facts)


@pytest.mark.parametrize(
    ("traceparent", "trace_id"),
    [
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"),
        (SECRET, None),
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
    assert SECRET not in page


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
    await live.running.wait_until_idle()
    assert (value("requests_started_total"), value("requests_in_flight")) == (1, 0)
    assert value("request_duration_seconds_count") == 1
    assert count(metrics, "Translate", "CANCELLED") == 1


async def test_a_refusing_server_answers_unavailable(live: Live, engine: EchoEngine) -> None:
    live.running.refuse()

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await live.stub.Translate(REQUEST)

    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    assert refusal.value.details() == "the server is shutting down"
    await live.running.wait_until_quiet(0.01)


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


async def test_a_call_without_a_message_is_no_request(live: Live) -> None:
    error = await failure(raw(live).stream_unary("/babelserve.v1.TranslationService/Translate")(iter([])))

    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "request: is missing" in (error.details() or "")
