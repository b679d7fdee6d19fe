"""Calls of a live server whose messages come late, or not at all."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from server.errors import InvalidRequest, Overloaded
from server.rpc.intake import MAX_MESSAGE_BYTES, Intake, messages_at_once
from server.telemetry.log import begin_request, facts
from server.telemetry.metrics import Metrics
from server.translation.calls import Call, Calls
from server.translation.memory import MemoryBudget, message_need
from server.translation.running_calls import RunningCalls

MANY_BYTES = 1 << 30


class Sender:
    """The context of a call whose message is there when it is set."""

    def __init__(self, peer: str = "peer", message: Any = None) -> None:
        self._peer = peer
        self.is_being_read = asyncio.Event()
        self.was_read = False
        self._message: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if message is not None:
            self._message.set_result(message)

    def arrive(self, message: bytes) -> None:
        if not self._message.done():  # as gRPC keeps a message that nobody takes
            self._message.set_result(message)

    def peer(self) -> str:
        return self._peer

    async def read(self) -> Any:
        self.is_being_read.set()
        message = await self._message
        self.was_read = True
        return message


@pytest.fixture
def memory() -> MemoryBudget:
    return MemoryBudget(MANY_BYTES)


async def test_a_message_holds_memory_until_its_call_ends(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8)
    data = await intake.read(Sender(message=b"abc"))

    with intake.hold(data):
        held = memory.used_bytes

    assert (data, held, memory.used_bytes) == (b"abc", message_need(3), 0)


async def test_short_messages_pass_between_long_ones_that_came_at_once(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8)
    parsed: list[str] = []

    async def parse(name: str, num_bytes: int) -> None:
        await intake.wait_to_parse(bytes(num_bytes))
        parsed.append(name)

    long = [asyncio.create_task(parse(name, MAX_MESSAGE_BYTES)) for name in ("first", "second")]
    await asyncio.sleep(0.01)
    await parse("short", 100)
    await asyncio.gather(*long)

    assert parsed == ["first", "short", "second"]


async def test_long_messages_whose_callers_leave_keep_no_other_waiting(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8)
    long = bytes(MAX_MESSAGE_BYTES)
    await intake.wait_to_parse(long)
    gone = [asyncio.create_task(intake.wait_to_parse(long)) for _ in range(100)]
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    await asyncio.wait(gone)

    begun = time.monotonic()
    await intake.wait_to_parse(long)
    assert time.monotonic() - begun < 5.0  # a hundred turns take 12.5 seconds


async def test_a_call_without_a_message_breaks_a_rule_and_is_noted(memory: MemoryBudget) -> None:
    begin_request("1")

    with pytest.raises(InvalidRequest, match=r"^request: is missing"):
        await Intake(memory, 8).read(Sender(message=grpc.aio.EOF))  # type: ignore[attr-defined]

    assert "more than 4194304 bytes" in str(facts()["unread"])  # gRPC may say no more of one that is too long


async def test_a_message_that_does_not_come_is_given_up_and_read_no_more(memory: MemoryBudget) -> None:
    with pytest.raises(Overloaded, match=r"not whole in time, at most 0\.01 seconds") as caught:
        await Intake(memory, 8, patience_seconds=0.01).read(Sender())

    assert caught.value.reason == "unfinished"


async def test_a_message_that_does_not_come_is_counted_as_unfinished(memory: MemoryBudget, metrics: Metrics) -> None:
    intake, calls = Intake(memory, 8, patience_seconds=0.01), Calls(metrics, RunningCalls(), 20.0)

    with pytest.raises(Overloaded):
        await calls.run(Call("Translate", "1", lambda _: False), lambda: intake.read(Sender()))

    assert metrics.registry.get_sample_value("babelserve_queue_rejected_total", {"reason": "unfinished"}) == 1


@pytest.mark.parametrize("has_dawdled", [False, True])
async def test_a_message_that_comes_after_it_was_given_up_is_taken_off_the_call(
    memory: MemoryBudget, has_dawdled: bool
) -> None:
    intake = Intake(memory, 8, patience_seconds=0.01, slow_seconds=0.01)
    sender = Sender()
    for context in [Sender(), sender] if has_dawdled else [sender]:
        with pytest.raises(Overloaded):
            await intake.read(context)

    sender.arrive(bytes(MAX_MESSAGE_BYTES))
    await asyncio.sleep(0)
    assert sender.was_read


async def test_a_message_that_comes_after_its_caller_has_left_is_taken_off_the_call(memory: MemoryBudget) -> None:
    sender = Sender()
    reading = asyncio.create_task(Intake(memory, 8).read(sender))
    await sender.is_being_read.wait()

    reading.cancel()
    await asyncio.wait([reading])
    sender.arrive(bytes(MAX_MESSAGE_BYTES))
    await asyncio.sleep(0)

    assert sender.was_read


@pytest.mark.parametrize(("mib", "expected"), [(128, 12), (512, 16), (1024, 32), (1 << 16, 64)])
def test_messages_being_read_have_a_part_of_the_memory(mib: int, expected: int) -> None:
    assert messages_at_once(mib << 20) == expected
    assert mib < 512 or expected * MAX_MESSAGE_BYTES <= mib << 17


async def num_being_read(intake: Intake, senders: list[Sender]) -> int:
    """How many of the messages are read when nothing moves any more."""
    reading = [asyncio.create_task(intake.read(sender)) for sender in senders]
    for _ in range(100):
        await asyncio.sleep(0)
    num = sum(sender.is_being_read.is_set() for sender in senders)
    for task in reading:
        task.cancel()
    await asyncio.wait(reading)
    return num


async def test_few_messages_are_read_for_longer_than_a_moment(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8)
    reading = {asyncio.create_task(intake.read(Sender(f"peer {i}"))) for i in range(20)}

    refused: list[BaseException | None] = []
    while len(refused) < 20 - 6:
        done, reading = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
        refused += [task.exception() for task in done]

    assert {type(error) for error in refused} == {Overloaded}
    assert len(reading) == 6
    for task in reading:
        task.cancel()
    await asyncio.wait(reading)


async def test_who_sends_half_of_a_message_on_many_connections_keeps_nobody_waiting(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8)
    halves = [asyncio.create_task(intake.read(Sender(f"half {i}"))) for i in range(400)]
    await asyncio.sleep(0)
    begun = time.monotonic()

    assert await intake.read(Sender("honest", b"abc")) == b"abc"
    assert time.monotonic() - begun < 2.9  # each of 400 kept a turn, of which there were six, for three seconds
    for task in halves:
        task.cancel()
    await asyncio.wait(halves)


async def test_no_connection_has_more_than_two_of_them(memory: MemoryBudget) -> None:
    senders = [Sender(f"peer {i // 10}") for i in range(20)]

    assert await num_being_read(Intake(memory, 8), senders) == 4


async def test_connections_that_have_dawdled_keep_nobody_else_waiting(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8, patience_seconds=0.01, slow_seconds=60)
    slow = [Sender(f"slow {i}") for i in range(20)]
    await asyncio.gather(*(intake.read(sender) for sender in slow), return_exceptions=True)
    reading = [asyncio.create_task(intake.read(Sender(sender.peer()))) for sender in slow]

    assert await intake.read(Sender("honest", b"abc")) == b"abc"
    assert await num_being_read(intake, [Sender("slow 0")]) == 0
    for task in reading:
        task.cancel()
    await asyncio.wait(reading)


async def test_calls_that_wait_beside_one_that_dawdles_change_their_turns_with_it(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8, patience_seconds=0.01, slow_seconds=0.02)
    senders = [Sender("slow") for _ in range(4)]

    outcomes = await asyncio.gather(*(intake.read(sender) for sender in senders), return_exceptions=True)

    messages = [str(outcome) for outcome in outcomes]
    assert sum("0.01 seconds" in message for message in messages) == 2
    assert sum("0.02 seconds" in message for message in messages) == 2


async def test_connections_that_have_sent_much_share_a_turn_and_keep_nobody_else_waiting(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8)
    long = bytes(MAX_MESSAGE_BYTES)
    for peer in ("heavy 1", "heavy 2"):
        await intake.read(Sender(peer, long))
    reading = asyncio.create_task(intake.read(Sender("heavy 1")))

    assert await num_being_read(intake, [Sender("heavy 2"), Sender("honest 1"), Sender("honest 2")]) == 2
    reading.cancel()


async def test_what_connections_send_that_have_sent_much_takes_its_time(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8)
    begun = time.monotonic()
    await intake.read(Sender("heavy", bytes(MAX_MESSAGE_BYTES)))
    first = time.monotonic()
    await intake.read(Sender("heavy", bytes(MAX_MESSAGE_BYTES)))

    assert first - begun < 0.5 <= time.monotonic() - first


async def test_who_has_sent_much_and_dawdles_blocks_others_of_the_kind_but_once(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8, patience_seconds=0.2, slow_seconds=60)
    for peer in ("heavy", "slow"):
        await intake.read(Sender(peer, bytes(MAX_MESSAGE_BYTES)))
    with pytest.raises(Overloaded):
        await intake.read(Sender("slow"))
    reading = asyncio.create_task(intake.read(Sender("slow")))

    assert await intake.read(Sender("heavy", b"abc")) == b"abc"
    reading.cancel()


async def test_a_server_answers_a_call_whose_message_never_ends(memory: MemoryBudget) -> None:
    intake = Intake(memory, 8, patience_seconds=0.01)
    outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handle(_: Any, context: Any) -> bytes:
        try:
            return await intake.read(context)
        except Overloaded as error:
            outcome.set_result(error.reason)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
            raise

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
