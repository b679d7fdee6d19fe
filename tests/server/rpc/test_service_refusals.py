"""What the service refuses, whole or in part: rules, models, bytes, sentences that fail."""

from typing import Any

import grpc
import pytest

from babelserve.v1 import translation_pb2 as pb
from server.bundle.tokenizer import Tokenizer
from server.errors import DeadlineExceeded, EngineFailed, NotServing, Overloaded
from server.models.model import Model
from server.rpc.service import SERVICE_NAME
from server.telemetry.metrics import Metrics
from server.text.splitter import MAX_TEXT_BYTES
from tests.server.conftest import Live
from tests.server.echo_engine import EchoEngine
from tests.server.rpc.parts import failure, raw, request, streamed, told, trailing

INVALID = grpc.StatusCode.INVALID_ARGUMENT
SECRET = "secret text"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"contents": []}, ["contents", "1024", "0"]),
        ({"contents": ["Hi. " * (MAX_TEXT_BYTES // 4 + 1)]}, ["contents[0]", str(MAX_TEXT_BYTES)]),
        ({"target_language_code": SECRET}, ["target_language_code", "11 characters"]),
        ({"mime_type": "text/rtf"}, ["mime_type", "text/plain", "text/html", "text/rtf"]),
        ({"decoding": pb.DecodingOptions(beam_size=9)}, ["decoding.beam_size", "1 to 8", "9"]),
        ({"decoding": pb.DecodingOptions(length_penalty=float("nan"))}, ["decoding.length_penalty", "nan"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_a_field_that_breaks_a_rule_is_named_with_limit_and_value(
    live: Live, fields: dict[str, Any], named: list[str]
) -> None:
    """Some of the rules; all of them are in tests/server/translation/test_rules.py."""
    message = pb.TranslateRequest(**({"contents": ["A dog runs."], "target_language_code": "de"} | fields))

    unary = await told(live.stub.Translate(message))
    stream = await told(live.stub.TranslateStream(pb.TranslateStreamRequest(request=message)).read())

    assert unary == stream
    code, details = unary
    assert code == INVALID
    assert [word for word in named if word not in details] == []
    assert SECRET not in details


async def test_an_unknown_model_is_not_found(live: Live) -> None:
    assert await told(live.stub.Translate(request("Hi.", model="other"))) == (
        grpc.StatusCode.NOT_FOUND,
        "model: other is not served here; echo is",
    )


async def test_language_codes_and_the_models_own_name_are_understood(live: Live) -> None:
    response = await live.stub.Translate(
        request(
            "A dog runs.", source_language_code="EN", target_language_code="De", model="echo", mime_type="text/plain"
        )
    )

    assert response.translations[0].text == "A dog runs."


@pytest.mark.parametrize("method", ["Translate", "TranslateStream", "ListModels"])
@pytest.mark.parametrize("payload", [b"\x0a\x05\xff\xfe\xfd\xfc\xfb\x1a\x02de", b"\x0a\xff\xff\xff\xff\x0f", b"\xff"])
async def test_bytes_that_are_no_message_are_invalid_and_counted(
    live: Live, model: Model, metrics: Any, method: str, payload: bytes
) -> None:
    if method == "TranslateStream":
        payload = b"\x0a" + bytes([len(payload)]) + payload
        call: Any = raw(live).unary_stream(f"/{SERVICE_NAME}/{method}")(payload).read()
    else:
        call = raw(live).unary_unary(f"/{SERVICE_NAME}/{method}")(payload)

    if method == "ListModels" and payload.startswith(b"\x0a\x05"):
        await call  # unknown fields are skipped, as protobuf demands
        return
    code, details = await told(call)

    assert code == INVALID
    assert "protobuf" in details
    labels = {"method": method, "code": "INVALID_ARGUMENT"}
    assert metrics.registry.get_sample_value("babelserve_requests_total", labels) == 1


async def test_a_text_that_is_too_long_fails_alone(live: Live) -> None:
    long = "Hi. " * (MAX_TEXT_BYTES // 4 + 1)

    response = await live.stub.Translate(request("A dog runs.", long, "A man sits."))
    messages = await streamed(live, "A dog runs.", long, "A man sits.")

    assert [t.text for t in response.translations] == ["A dog runs.", "", "A man sits."]
    assert [t.status.code for t in response.translations] == [0, INVALID.value[0], 0]
    assert "contents[1]" in response.translations[1].status.message
    assert {m.content_index: m.status.code for m in messages} == {0: 0, 1: INVALID.value[0], 2: 0}


def fails_on(tokenizer: Tokenizer, text: str, error: Exception) -> Any:
    ids = tokenizer.encode(text)
    return lambda source: error if source == ids else None


async def test_a_text_with_a_failed_sentence_fails_alone(live: Live, engine: EchoEngine, tokenizer: Tokenizer) -> None:
    engine.fails = fails_on(tokenizer, "Bad one.", EngineFailed("translation failed"))

    response = await live.stub.Translate(request("A dog runs. Bad one. Bad one. Good one.", "A man sits."))
    messages = await streamed(live, "A dog runs. Bad one. Bad one. Good one.", "A man sits.")

    assert [t.status.code for t in response.translations] == [grpc.StatusCode.INTERNAL.value[0], 0]
    assert response.translations[1].text == "A man sits."
    first = [m for m in messages if m.content_index == 0]
    assert [m.sentence.text for m in first] == ["A dog runs.", ""]
    assert first[-1].status.code == grpc.StatusCode.INTERNAL.value[0]
    assert [m.sentence.text for m in messages if m.content_index == 1] == ["A man sits."]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngineFailed("translation failed"), grpc.StatusCode.INTERNAL),
        (DeadlineExceeded("too late"), grpc.StatusCode.DEADLINE_EXCEEDED),
        (NotServing("stopping"), grpc.StatusCode.UNAVAILABLE),
    ],
)
async def test_when_every_text_fails_so_does_the_call(
    live: Live, engine: EchoEngine, error: Exception, code: grpc.StatusCode
) -> None:
    engine.fails = lambda _: error

    assert (await told(live.stub.Translate(request("One.", "Two."))))[0] == code
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await streamed(live, "One.", "Two.")
    assert caught.value.code() == code


async def test_a_message_for_which_there_is_no_memory_is_counted(live: Live, metrics: Metrics) -> None:
    give_back = live.translator.memory.keep(live.translator.memory.max_bytes)

    error = await failure(live.stub.Translate(request("Hi.")))
    give_back()

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert metrics.registry.get_sample_value("babelserve_queue_rejected_total", {"reason": "memory"}) == 1


async def test_what_was_just_refused_is_refused_unread(live: Live, engine: EchoEngine, metrics: Metrics) -> None:
    engine.refuses = Overloaded("queue is full", "sentences", retry_after_seconds=30.0, lasts_seconds=20.0)
    await failure(live.stub.Translate(request("Hi.", priority=pb.PRIORITY_HIGH)))
    engine.refuses = None

    refusals = [
        await failure(live.stub.Translate(request("Hi."))),
        await failure(raw(live).unary_unary(f"/{SERVICE_NAME}/Translate")(b"\xff")),  # as nobody has seen
        await failure(live.stub.TranslateStream(pb.TranslateStreamRequest(request=request("Hi."))).read()),
    ]
    models = await live.stub.ListModels(pb.ListModelsRequest())

    assert {error.code() for error in refusals} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    for error in refusals:
        assert error.details() == "refused as the last one of its kind was: queue is full"
        assert 20_000 < int(trailing(error)["grpc-retry-pushback-ms"]) <= 30_000
        assert trailing(error)["grpc-status-details-bin"]
    assert len(models.models) == 1
    assert metrics.registry.get_sample_value("babelserve_queue_rejected_total", {"reason": "sentences"}) == 4
