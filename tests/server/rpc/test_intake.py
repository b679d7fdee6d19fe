"""Calls of a live server whose messages come late, or not at all."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from server.errors import InvalidRequest, Overloaded
from server.rpc.intake import MAX_BEING_READ, Intake
from server.translation.memory import MemoryBudget, message_need

MANY_BYTES = 1 << 30


class Sender:
    """The context of a call whose message is there when it is set."""

    def __init__(self, peer: str = "peer", message: Any = None) -> None:
        self._peer = peer
        self.is_being_read = asyncio.Event()
        self._message: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if message is not None:
            self._message.set_result(message)

    def peer(self) -> str:
        return self._peer

    async def read(self) -> Any:
        self.is_being_read.set()
        return await self._message


async def read(intake: Intake, sender: Sender) -> bytes:
    async with intake.message(sender) as data:
        return data


@pytest.fixture
def memory() -> MemoryBudget:
    return MemoryBudget(MANY_BYTES)


async def test_a_message_holds_memory_until_its_call_ends(memory: MemoryBudget) -> None:
    async with Intake(memory).message(Sender(message=b"abc")) as data:
        assert (data, memory.used_bytes) == (b"abc", message_need(3))

    assert memory.used_bytes == 0


async def test_a_call_without_a_message_breaks_a_rule(memory: MemoryBudget) -> None:
    with pytest.raises(InvalidRequest, match="^request: is missing"):
        await read(Intake(memory), Sender(message=grpc.aio.EOF))


async def test_a_message_that_does_not_come_is_given_up_and_read_no_more(memory: MemoryBudget) -> None:
    with pytest.raises(Overloaded, match="not whole within 0.01 seconds") as caught:
        await read(Intake(memory, patience_seconds=0.01), Sender())

    assert caught.value.reason == "unfinished"


async def test_few_messages_are_read_at_once(memory: MemoryBudget) -> None:
    intake = Intake(memory, patience_seconds=60)
    senders = [Sender(f"peer {i}") for i in range(3 * MAX_BEING_READ)]
    reading = [asyncio.create_task(read(intake, sender)) for sender in senders]
    await senders[0].is_being_read.wait()

    num_being_read = sum(sender.is_being_read.is_set() for sender in senders)
    for task in reading:
        task.cancel()
    await asyncio.wait(reading)

    assert 0 < num_being_read <= MAX_BEING_READ // 2


async def test_a_connection_that_has_dawdled_keeps_nobody_else_waiting(memory: MemoryBudget) -> None:
    intake = Intake(memory, patience_seconds=0.01, slow_seconds=60)
    with pytest.raises(Overloaded):
        await read(intake, Sender("slow"))
    again = [Sender("slow") for _ in range(3 * MAX_BEING_READ)]
    reading = [asyncio.create_task(read(intake, sender)) for sender in again]
    await again[0].is_being_read.wait()

    assert await read(intake, Sender("honest", b"abc")) == b"abc"
    assert sum(sender.is_being_read.is_set() for sender in again) == MAX_BEING_READ // 2
    for task in reading:
        task.cancel()
    await asyncio.wait(reading)


async def test_calls_that_wait_beside_one_that_dawdles_change_their_turns_with_it(memory: MemoryBudget) -> None:
    intake = Intake(memory, patience_seconds=0.01, slow_seconds=0.02)
    senders = [Sender("slow") for _ in range(MAX_BEING_READ)]

    outcomes = await asyncio.gather(*(read(intake, sender) for sender in senders), return_exceptions=True)

    messages = [str(outcome) for outcome in outcomes]
    assert sum("0.01 seconds" in message for message in messages) == MAX_BEING_READ // 2
    assert sum("0.02 seconds" in message for message in messages) == MAX_BEING_READ // 2


async def test_a_server_answers_a_call_whose_message_never_ends(memory: MemoryBudget) -> None:
    intake = Intake(memory, patience_seconds=0.01)
    outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handle(_: Any, context: Any) -> bytes:
        try:
            return await read(intake, context)
        except Overloaded as error:
            outcome.set_result(error.reason)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))

    async def never() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    server = grpc.aio.server()
    methods = {"M": grpc.stream_unary_rpc_method_handler(handle)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        raw: Any = channel
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await raw.stream_unary("/s/M")(never())
        assert await raw.unary_unary("/s/M")(b"abc") == b"abc"
    await server.stop(None)

    assert (caught.value.code(), await outcome) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "unfinished")
