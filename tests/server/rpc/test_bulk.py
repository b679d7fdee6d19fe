"""`TranslateBulk` on a real gRPC server; the engine echoes."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Priority
from server.rpc.intake import MAX_MESSAGE_BYTES
from server.telemetry.metrics import Metrics
from server.text.splitter import MAX_TEXT_BYTES
from tests.server.conftest import Live
from tests.server.echo_engine import EchoEngine
from tests.server.rpc.parts import count, failure, told

EOF = grpc.aio.EOF  # type: ignore[attr-defined]


def options(**fields: Any) -> pb.TranslateBulkRequest:
    return pb.TranslateBulkRequest(options=pb.TranslateRequest(**({"target_language_code": "de"} | fields)))


def text(identity: int, content: str) -> pb.TranslateBulkRequest:
    return pb.TranslateBulkRequest(text=pb.BulkText(id=identity, content=content))


async def sent(live: Live, *messages: pb.TranslateBulkRequest) -> Any:
    """A call with these messages that stays open."""
    call: Any = live.stub.TranslateBulk()
    for message in messages:
        await call.write(message)
    return call


async def bulk(live: Live, *messages: pb.TranslateBulkRequest) -> dict[int, pb.TranslateBulkResponse]:
    """Returns the answers to messages. Calls again if gRPC's client hides how a call has ended while it still sent."""
    while True:
        try:
            call: Any = live.stub.TranslateBulk(iter(messages))
            return {response.id: response async for response in call}
        except grpc.aio.AioRpcError as error:
            if error.details() != "Internal error from Core":
                raise


async def test_texts_come_back_by_their_ids_with_the_model(live: Live) -> None:
    found = await bulk(live, options(), text(7, " One dog. Two dogs.\n"), text(1 << 63, "***"), text(0, ""))

    assert {identity: response.translation.text for identity, response in found.items()} == {
        7: " One dog. Two dogs.\n",
        1 << 63: "***",
        0: "",
    }
    assert {(response.model, response.model_version) for response in found.values()} == {("echo", "7")}


async def test_a_translation_is_that_of_the_unary_method(live: Live) -> None:
    content, output = "A dog runs.\n*** A man sits.", pb.OutputOptions(include_sentences=True)

    found = await bulk(live, options(output=output), text(0, content))
    unary = await live.stub.Translate(pb.TranslateRequest(contents=[content], target_language_code="de", output=output))

    assert found[0].translation == unary.translations[0]


async def test_an_error_names_the_text_by_its_id(live: Live) -> None:
    found = await bulk(live, options(), text(1 << 63, "x" * (MAX_TEXT_BYTES + 1)), text(7, "One dog."))

    assert found[1 << 63].translation.status.message.startswith(f"contents[{1 << 63}]: must be at most ")
    assert not found[7].translation.HasField("status")


async def test_an_answer_comes_while_the_client_still_sends(live: Live) -> None:
    call = await sent(live, options(), text(1, "One dog."))
    first = await call.read()
    await call.write(text(2, "Two dogs."))
    second = await call.read()
    await call.done_writing()

    assert [first.id, second.id, await call.read()] == [1, 2, EOF]
    assert await call.code() == grpc.StatusCode.OK


async def test_a_caller_that_gets_no_answer_for_long_hears_that_the_call_has_begun(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.rpc.interceptors._SILENT_SECONDS", 0.1)
    call = await sent(live, options())

    initial = dict(await asyncio.wait_for(call.initial_metadata(), 30.0))
    await call.write(text(1, "One dog."))
    answer = await call.read()
    await call.done_writing()

    assert initial["x-request-id"]
    assert (answer.id, await call.read(), await call.code()) == (1, EOF, grpc.StatusCode.OK)


async def test_a_call_that_has_begun_ends_with_its_error(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.rpc.interceptors._SILENT_SECONDS", 0.1)
    call = await sent(live, options())

    await asyncio.wait_for(call.initial_metadata(), 30.0)
    await call.write(options())

    assert await call.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "text: must be set" in await call.details()


async def test_a_call_without_a_text_is_answered_with_none(live: Live) -> None:
    assert await bulk(live, options()) == {}


async def test_a_text_fails_alone(live: Live) -> None:
    found = await bulk(live, options(), text(1, "A" * (2 << 20) + "B"), text(2, "One dog."))

    assert found[1].translation.status.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert "must be at most 2097152 bytes" in found[1].translation.status.message
    assert found[2].translation.text == "One dog."


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "request: is missing"),
        ([text(1, "One dog.")], "options: must be set in the first message"),
        ([options(), options()], "text: must be set in every message after the first"),
        ([options(contents=["One.", "Two."])], "options.contents: must be empty: .*, not 2 texts"),
        ([options(priority=9), text(1, "One dog.")], "priority: must be from 0 to 3, not 9"),
        ([options(decoding=pb.DecodingOptions(beam_size=99)), text(1, "One dog.")], "decoding.beam_size: .*not 99"),
    ],
)
async def test_a_wrong_message_ends_the_call(live: Live, messages: Any, words: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=words) as caught:
        await bulk(live, *messages)

    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


async def test_bytes_that_are_no_message_end_the_call_after_the_texts_before(live: Live) -> None:
    channel: Any = live.channel
    method = channel.stream_stream(
        "/babelserve.v1.TranslationService/TranslateBulk",
        request_serializer=lambda data: data,
        response_deserializer=pb.TranslateBulkResponse.FromString,
    )
    call = method(iter([options().SerializeToString(), text(5, "One dog.").SerializeToString(), b"\xff\xff"]))
    found = [await call.read()]

    error = await failure(call.read())

    assert [response.id for response in found] == [5]
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT


async def test_the_default_priority_is_low(live: Live, engine: EchoEngine) -> None:
    await bulk(live, options(), text(1, "One dog."))
    await bulk(live, options(priority=pb.PRIORITY_HIGH), text(1, "One dog."))

    assert [flow.rank for flow in engine.flows] == [Priority.LOW, Priority.HIGH]


async def test_a_client_that_reads_nothing_is_not_read_from(live: Live, engine: EchoEngine) -> None:
    content = "One dog runs over the field. " * 100
    num_read = 0

    async def messages() -> AsyncIterator[pb.TranslateBulkRequest]:
        nonlocal num_read
        yield options()
        for number in range(100_000):
            num_read += 1
            yield text(number, content)

    call: Any = live.stub.TranslateBulk(messages())
    before = -1
    while num_read != before:  # it stops, as the windows of both sides are full
        before = num_read
        await asyncio.sleep(0.3)
    held = live.translator.memory.used_bytes
    call.cancel()
    await live.running.wait_until_idle()

    assert 0 < num_read < 10_000
    assert held < 64 << 20
    assert live.translator.memory.used_bytes == 0


async def test_an_open_call_holds_the_memory_of_the_longest_message(live: Live) -> None:
    call = await sent(live, options(), text(1, "One dog."))
    await call.read()
    await call.write(text(2, "Two dogs."))
    await call.read()

    assert live.translator.memory.used_bytes >= 2 * MAX_MESSAGE_BYTES
    await call.done_writing()
    assert await call.read() is EOF
    assert live.translator.memory.used_bytes == 0


async def test_a_caller_who_leaves_takes_the_sentences_along(live: Live, engine: EchoEngine) -> None:
    engine.is_holding = True
    call = await sent(live, options(), text(1, "One dog."), text(2, "Two dogs."))
    await engine.submitted.wait()

    call.cancel()
    await live.running.wait_until_idle()

    assert engine.futures
    assert all(future.cancelled() for future in engine.futures)


async def test_a_passed_deadline_ends_the_call(live: Live, engine: EchoEngine, metrics: Metrics) -> None:
    engine.is_holding = True
    call: Any = live.stub.TranslateBulk(iter([options(), text(1, "One dog.")]), timeout=1.0)

    code, _ = await told(call.read())
    await live.running.wait_until_idle()

    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert count(metrics, "TranslateBulk", "DEADLINE_EXCEEDED") == 1


async def test_a_server_that_shuts_down_ends_the_call_and_answers_what_it_has(live: Live, engine: EchoEngine) -> None:
    engine.is_holding = True
    call = await sent(live, options(), text(1, "One dog."))
    await engine.submitted.wait()
    live.running.refuse()
    engine.release(0)
    found = await call.read()

    assert found.id == 1
    assert (await failure(call.read())).code() == grpc.StatusCode.UNAVAILABLE


async def test_the_log_line_has_the_sums_of_all_texts(live: Live, caplog: Any) -> None:
    with caplog.at_level(logging.INFO, "server.translation.calls"):
        await bulk(live, options(), text(1, "One dog. Two dogs."), text(2, "Three dogs."), text(3, "***"))
        await live.running.wait_until_idle()
        await asyncio.sleep(0)

    (facts,) = [record.facts for record in caplog.records if record.message == "request"]
    assert (facts["method"], facts["code"], facts["texts"], facts["sentences"]) == ("TranslateBulk", "OK", 3, 4)
    assert facts["source_tokens"] == facts["target_tokens"] > 0
