from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, Overloaded
from server.rpc.intake import Intake
from server.rpc.parsed import parsed, parsed_stream
from server.translation.memory import MemoryBudget, answer_need, message_need

MESSAGE = pb.TranslateRequest(contents=["A dog runs."], target_language_code="de")
NO_MESSAGE = b"\xff"
MANY_BYTES = 1 << 30


class Arrived:
    """The context of a call whose message is there, and whose answer is sent when `end` is called."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._callbacks: list[Callable[[Any], None]] = []

    def time_remaining(self) -> float:
        return 2.5

    def peer(self) -> str:
        return "peer"

    async def read(self) -> bytes:
        return self._data

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)

    def end(self) -> None:
        for callback in self._callbacks:
            callback(self)


async def test_bytes_are_parsed_for_a_handler_and_those_that_are_none_are_an_invalid_request() -> None:
    async def handle(message: pb.TranslateRequest, seconds: float | None) -> pb.Translation:
        return pb.Translation(text=f"{message.contents[0]} {seconds}")

    handler = parsed(pb.TranslateRequest, handle, Intake(MemoryBudget(MANY_BYTES), 8))

    answer = await handler(None, Arrived(MESSAGE.SerializeToString()))
    assert pb.Translation.FromString(answer).text == "A dog runs. 2.5"
    with pytest.raises(InvalidRequest, match=r"^request: is no valid protobuf message"):
        await handler(None, Arrived(NO_MESSAGE))


async def test_bytes_are_parsed_for_a_handler_that_yields() -> None:
    async def handle(message: pb.TranslateRequest, seconds: float | None) -> AsyncIterator[pb.Translation]:
        for word in message.contents[0].split():
            yield pb.Translation(text=word)

    handler = parsed_stream(pb.TranslateRequest, handle, Intake(MemoryBudget(MANY_BYTES), 8))

    answers = [answer async for answer in handler(None, Arrived(MESSAGE.SerializeToString()))]
    assert [pb.Translation.FromString(answer).text for answer in answers] == ["A", "dog", "runs."]
    with pytest.raises(InvalidRequest, match=r"^request: is no valid protobuf message"):
        await anext(handler(None, Arrived(NO_MESSAGE)))


async def test_an_answer_is_counted_until_it_is_sent() -> None:
    async def handle(message: pb.TranslateRequest, seconds: float | None) -> pb.Translation:
        return pb.Translation(text=message.contents[0])

    memory = MemoryBudget(MANY_BYTES)
    context = Arrived(MESSAGE.SerializeToString())

    answer = await parsed(pb.TranslateRequest, handle, Intake(memory, 8))(None, context)

    assert memory.used_bytes == answer_need(len(answer))
    context.end()
    assert memory.used_bytes == 0


async def test_of_a_stream_what_could_not_be_written_is_counted_until_the_call_ends() -> None:
    async def handle(message: pb.TranslateRequest, seconds: float | None) -> AsyncIterator[pb.Translation]:
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


async def test_a_call_that_is_refused_is_not_read() -> None:
    async def handle(message: pb.TranslateRequest, seconds: float | None) -> pb.Translation:
        raise AssertionError

    def refuse(seconds: float | None) -> None:
        raise Overloaded(f"{seconds}", "quota")

    memory = MemoryBudget(MANY_BYTES)
    with pytest.raises(Overloaded, match=r"^2\.5$"):
        await parsed(pb.TranslateRequest, handle, Intake(memory, 8), refuse)(None, Arrived(NO_MESSAGE))
    assert memory.used_bytes == 0
