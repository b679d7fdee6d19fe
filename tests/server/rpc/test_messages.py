"""Requests read into plain values, and the calls that bring them, without a server."""

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Priority, Tenant
from server.errors import Code, InvalidRequest
from server.rpc.intake import Intake
from server.rpc.messages import STATUS_CODES, parsed, parsed_stream, read_request
from server.telemetry.log import begin_request, request_id
from server.translation.memory import MemoryBudget, answer_need, message_need
from server.translation.request import DecodingRequest, TextOptions

TENANT = Tenant(name="billing")
MESSAGE = pb.TranslateRequest(contents=["A dog runs."], target_language_code="de")
NO_MESSAGE = b"\xff"
MANY_BYTES = 1 << 30


class Arrived:
    """The context of a call whose message is there, and whose answer is sent when `end` is called."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._callbacks: list[Callable[[Any], None]] = []

    def __str__(self) -> str:
        return "with context"

    def peer(self) -> str:
        return "peer"

    async def read(self) -> bytes:
        return self._data

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)

    def end(self) -> None:
        for callback in self._callbacks:
            callback(self)


@pytest.mark.parametrize("code", Code)
def test_every_code_has_the_status_of_its_name(code: Code) -> None:
    assert STATUS_CODES[code].name == code.name


def test_every_field_of_a_request_is_read() -> None:
    message = pb.TranslateRequest(
        contents=["one", "two"],
        source_language_code="en",
        target_language_code="de",
        model="m",
        mime_type="text/plain",
        decoding=pb.DecodingOptions(
            beam_size=3,
            num_hypotheses=2,
            length_penalty=0.5,
            max_output_tokens=9,
            with_scores=False,
            use_shortlist=True,
        ),
        priority=pb.PRIORITY_LOW,
        target_prefixes=["eins", ""],
        traffic_key="document 7",
        output=pb.OutputOptions(include_alignment=True, include_tokens=True, include_confidence=True),
        text=pb.TextOptions(
            refuse_unknown_scripts=True,
            translate_attributes=True,
            keep=[pb.KeepRule(literal="Acme"), pb.KeepRule(opening="<<", closing=">>"), pb.KeepRule(opening="[")],
        ),
    )

    request = read_request(message, None, TENANT)

    assert (list(request.contents), request.tenant) == (["one", "two"], TENANT)
    assert list(request.target_prefixes) == ["eins", ""]
    assert (request.source_language_code, request.target_language_code) == ("en", "de")
    assert (request.model, request.mime_type, request.priority) == ("m", "text/plain", Priority.LOW)
    assert request.traffic_key == "document 7"
    assert request.decoding == DecodingRequest(
        beam_size=3,
        num_hypotheses=2,
        length_penalty=0.5,
        max_output_tokens=9,
        with_scores=False,
        use_shortlist=True,
    )
    assert request.with_alignment
    assert request.with_tokens
    assert request.with_confidence
    assert request.text == TextOptions(
        refuse_unknown_scripts=True, translate_attributes=True, keep=["Acme", ("<<", ">>"), ("[", "")]
    )


@pytest.mark.parametrize("rule", [pb.KeepRule(), pb.KeepRule(literal="a", closing="b")])
def test_a_rule_of_two_kinds_or_none_is_refused(rule: pb.KeepRule) -> None:
    message = pb.TranslateRequest(text=pb.TextOptions(keep=[pb.KeepRule(literal="a"), rule]))

    with pytest.raises(
        InvalidRequest, match=r"^text.keep\[1\]: must have either a literal, or an opening and a closing"
    ):
        read_request(message, None, TENANT)


def test_without_a_traffic_key_the_requests_id_is_one() -> None:
    begin_request("id-7")

    assert read_request(MESSAGE, None, TENANT).traffic_key == "id-7"
    request_id.set(None)


def test_a_priority_that_is_none_is_refused() -> None:
    assert read_request(MESSAGE, None, TENANT).priority is Priority.NORMAL
    with pytest.raises(InvalidRequest, match="priority: must be from 0 to 3, not 7"):
        read_request(pb.TranslateRequest(priority=7), None, TENANT)  # type: ignore[arg-type]


def test_a_deadline_is_an_instant_from_the_arrival_on() -> None:
    before = time.monotonic()
    soon, never = read_request(MESSAGE, 2.5, TENANT), read_request(MESSAGE, None, TENANT)

    assert before <= soon.arrived <= time.monotonic()
    assert soon.deadline == soon.arrived + 2.5
    assert never.deadline == float("inf")


async def test_bytes_are_parsed_for_a_handler_and_those_that_are_none_are_an_invalid_request() -> None:
    async def handle(message: pb.TranslateRequest, context: Any) -> pb.Translation:
        return pb.Translation(text=f"{message.contents[0]} {context}")

    handler = parsed(pb.TranslateRequest, handle, Intake(MemoryBudget(MANY_BYTES), 8))

    answer = await handler(None, Arrived(MESSAGE.SerializeToString()))
    assert pb.Translation.FromString(answer).text == "A dog runs. with context"
    with pytest.raises(InvalidRequest, match=r"^request: is no valid protobuf message"):
        await handler(None, Arrived(NO_MESSAGE))


async def test_bytes_are_parsed_for_a_handler_that_yields() -> None:
    async def handle(message: pb.TranslateRequest, context: Any) -> AsyncIterator[pb.Translation]:
        for word in message.contents[0].split():
            yield pb.Translation(text=word)

    handler = parsed_stream(pb.TranslateRequest, handle, Intake(MemoryBudget(MANY_BYTES), 8))

    answers = [answer async for answer in handler(None, Arrived(MESSAGE.SerializeToString()))]
    assert [pb.Translation.FromString(answer).text for answer in answers] == ["A", "dog", "runs."]
    with pytest.raises(InvalidRequest, match=r"^request: is no valid protobuf message"):
        await anext(handler(None, Arrived(NO_MESSAGE)))


async def test_an_answer_is_counted_until_it_is_sent() -> None:
    async def handle(message: pb.TranslateRequest, context: Any) -> pb.Translation:
        return pb.Translation(text=message.contents[0])

    memory = MemoryBudget(MANY_BYTES)
    context = Arrived(MESSAGE.SerializeToString())

    answer = await parsed(pb.TranslateRequest, handle, Intake(memory, 8))(None, context)

    assert memory.used_bytes == answer_need(len(answer))
    context.end()
    assert memory.used_bytes == 0


async def test_of_a_stream_what_could_not_be_written_is_counted_until_the_call_ends() -> None:
    async def handle(message: pb.TranslateRequest, context: Any) -> AsyncIterator[pb.Translation]:
        for word in message.contents[0].split():
            yield pb.Translation(text=word)

    memory = MemoryBudget(MANY_BYTES)
    context = Arrived(MESSAGE.SerializeToString())
    answers: Any = parsed_stream(pb.TranslateRequest, handle, Intake(memory, 8))(None, context)
    answer = await anext(answers)

    assert memory.used_bytes == message_need(MESSAGE.ByteSize())
    await answers.aclose()
    assert memory.used_bytes == answer_need(len(answer))
    context.end()
    assert memory.used_bytes == 0
