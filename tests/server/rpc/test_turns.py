"""Messages that are there at once, come late, or not at all, and who has to give way."""

import asyncio
import time
from typing import Any

import pytest

from server.rpc.turns import Turns


class Sender:
    """The context of a call whose message is there when it is set."""

    def __init__(self, message: bytes | None = None) -> None:
        self.message: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.is_being_read = asyncio.Event()
        if message is not None:
            self.message.set_result(message)

    async def read(self) -> bytes:
        self.is_being_read.set()
        return await self.message


def start(turns: Turns, sender: Sender) -> "asyncio.Task[Any]":
    return asyncio.create_task(turns.read(sender))


async def outcome(reading: "asyncio.Task[Any]") -> str:
    await asyncio.wait({reading})
    return "given up" if isinstance(reading.exception(), TimeoutError) else "read"


async def test_a_message_that_is_there_needs_no_turn() -> None:
    assert await Turns(0, 3.0).read(Sender(b"abc")) == b"abc"


async def test_a_message_that_needs_longer_than_a_look_gets_a_turn() -> None:
    sender = Sender()
    reading = start(Turns(1, 60.0, look_seconds=0.01), sender)
    asyncio.get_running_loop().call_later(0.05, sender.message.set_result, b"abc")

    assert await reading == b"abc"


async def test_a_message_that_does_not_come_is_given_up() -> None:
    begun = time.monotonic()

    with pytest.raises(TimeoutError):
        await Turns(1, 0.03, look_seconds=0.01).read(Sender())

    assert time.monotonic() - begun >= 0.025


async def test_who_finds_all_turns_taken_leaves_while_their_holders_have_not_had_a_fair_part() -> None:
    turns = Turns(1, 60.0, look_seconds=0.01, fair_seconds=60.0)
    first = Sender()
    holding = start(turns, first)
    await first.is_being_read.wait()

    assert await outcome(start(turns, Sender())) == "given up"
    first.message.set_result(b"abc")
    assert await outcome(holding) == "read"


async def test_who_has_its_message_when_a_late_event_loop_goes_on_needs_no_turn() -> None:
    senders = [Sender() for _ in range(3)]
    turns = Turns(1, 0.2, look_seconds=0.02, fair_seconds=60.0)
    readings = [start(turns, sender) for sender in senders]
    await asyncio.wait([asyncio.ensure_future(sender.is_being_read.wait()) for sender in senders])

    time.sleep(0.1)  # noqa: ASYNC251 # nothing else runs meanwhile
    for sender in senders[1:]:
        sender.message.set_result(b"abc")

    assert [await outcome(reading) for reading in readings] == ["given up", "read", "read"]


async def test_who_has_had_a_turn_for_longest_gives_it_up_after_a_fair_part() -> None:
    turns = Turns(2, 60.0, look_seconds=0.01, fair_seconds=0.0)
    senders = [Sender() for _ in range(3)]
    readings = []
    for sender in senders:
        readings.append(start(turns, sender))
        await sender.is_being_read.wait()

    assert await outcome(readings[0]) == "given up"
    for sender in senders[1:]:
        sender.message.set_result(b"abc")
    assert [await outcome(reading) for reading in readings[1:]] == ["read", "read"]


async def test_a_turn_whose_time_ends_in_the_same_moment_is_taken_over() -> None:
    turns = Turns(1, 0.3, look_seconds=0.1, most_looks=2, fair_seconds=0.0)
    first, second = Sender(), Sender()
    readings = [start(turns, first)]
    while not turns._taken:  # noqa: ASYNC110  # nobody tells
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.15)  # the turn lasts for 0.2 seconds
    readings.append(start(turns, second))
    await second.is_being_read.wait()
    time.sleep(0.2)  # noqa: ASYNC251  # one turn of the loop finds both the end of the turn and that of the look

    async with asyncio.timeout(10.0):
        assert [await outcome(reading) for reading in readings] == ["given up", "given up"]
    assert turns._looks._value == 2


async def test_a_turn_is_free_again_when_its_message_is_read_or_its_caller_has_left() -> None:
    turns = Turns(1, 60.0, look_seconds=0.0, fair_seconds=60.0)
    for has_left in (False, True):
        sender = Sender()
        reading = start(turns, sender)
        await sender.is_being_read.wait()
        await asyncio.sleep(0.01)  # the look is over
        if has_left:
            reading.cancel()
        else:
            sender.message.set_result(b"abc")
        await asyncio.wait({reading})

        later = Sender()
        holding = start(turns, later)
        await later.is_being_read.wait()
        await asyncio.sleep(0.01)
        later.message.set_result(b"abc")
        assert await outcome(holding) == "read"


async def test_no_more_looks_are_taken_at_once_than_there_are() -> None:
    turns = Turns(8, 60.0, look_seconds=60.0, most_looks=2)
    senders = [Sender() for _ in range(3)]
    readings = [start(turns, sender) for sender in senders]
    await asyncio.wait([asyncio.create_task(sender.is_being_read.wait()) for sender in senders[:2]])

    assert not senders[2].is_being_read.is_set()
    senders[0].message.set_result(b"abc")
    await senders[2].is_being_read.wait()
    for sender in senders[1:]:
        sender.message.set_result(b"abc")
    await asyncio.wait(readings)


async def test_a_caller_who_leaves_gives_its_look_back() -> None:
    turns = Turns(8, 60.0, look_seconds=60.0, most_looks=1)
    sender = Sender()
    reading = start(turns, sender)
    await sender.is_being_read.wait()
    reading.cancel()

    assert await turns.read(Sender(b"abc")) == b"abc"
