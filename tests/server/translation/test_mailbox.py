"""Threads that put while a task gets: nothing is lost, and the event loop is woken seldom."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from server.translation.mailbox import Doorbell, Mailbox

SECONDS = 100.0  # far above what any of these needs


@pytest.fixture
async def wakes(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Calls by which other threads have woken the loop."""
    loop = asyncio.get_running_loop()
    calls: list[object] = []
    call_soon = loop.call_soon_threadsafe

    def wake(call: Callable[[], object]) -> object:
        calls.append(call)
        return call_soon(call)

    monkeypatch.setattr(loop, "call_soon_threadsafe", wake)
    return calls


async def test_nothing_is_lost_between_threads_and_each_one_keeps_its_order() -> None:
    loop = asyncio.get_running_loop()
    mailbox: Mailbox[tuple[int, int]] = Mailbox(Doorbell())

    def put(thread: int) -> None:
        for number in range(2000):
            mailbox.put((thread, number), loop)

    with ThreadPoolExecutor(3) as pool:
        putting = [loop.run_in_executor(pool, put, thread) for thread in range(3)]
        async with asyncio.timeout(SECONDS):
            got = [await mailbox.get() for _ in range(6000)]
            await asyncio.gather(*putting)

    for thread in range(3):
        assert [number for from_thread, number in got if from_thread == thread] == list(range(2000))


async def test_whoever_waits_for_several_has_all_however_they_are_put() -> None:
    loop, count = asyncio.get_running_loop(), 5000
    mailbox: Mailbox[int] = Mailbox(Doorbell())

    def put() -> None:
        for number in range(count):
            mailbox.put(number, loop)

    with ThreadPoolExecutor(2) as pool:
        putting = [loop.run_in_executor(pool, put) for _ in range(2)]
        async with asyncio.timeout(SECONDS):
            got = [await mailbox.get(min(8, left)) for left in range(2 * count, 0, -1)]
            await asyncio.gather(*putting)

    assert sorted(got) == sorted(2 * list(range(count)))


async def test_the_loop_is_woken_once_for_all_that_comes_before_its_turn(wakes: list[object]) -> None:
    loop = asyncio.get_running_loop()
    mailbox: Mailbox[int] = Mailbox(Doorbell())
    for number in range(5):
        mailbox.put(number, loop)

    async with asyncio.timeout(SECONDS):
        assert [await mailbox.get() for _ in range(5)] == [0, 1, 2, 3, 4]
        assert len(wakes) == 1

        loop.call_later(0.01, mailbox.put, 5, loop)  # its one wake is over, and finds nothing
        assert await mailbox.get() == 5
    assert len(wakes) == 2


async def test_the_loop_is_woken_once_for_all_mailboxes(wakes: list[object]) -> None:
    loop, doorbell = asyncio.get_running_loop(), Doorbell()
    mailboxes: list[Mailbox[int]] = [Mailbox(doorbell) for _ in range(3)]
    getting = [asyncio.create_task(each.get()) for each in mailboxes]
    await asyncio.sleep(0)
    for number, each in enumerate(mailboxes):
        each.put(number, loop)

    async with asyncio.timeout(SECONDS):
        assert await asyncio.gather(*getting) == [0, 1, 2]
    assert len(wakes) == 1


async def test_the_loop_is_not_woken_before_as_much_has_come_as_is_waited_for(wakes: list[object]) -> None:
    loop = asyncio.get_running_loop()
    mailbox: Mailbox[int] = Mailbox(Doorbell())
    getting = asyncio.create_task(mailbox.get(3))
    await asyncio.sleep(0)

    for number, expected in enumerate((0, 0, 1)):
        mailbox.put(number, loop)
        assert len(wakes) == expected

    async with asyncio.timeout(SECONDS):
        assert await getting == 0


def test_what_is_put_when_the_loop_is_closed_is_for_nobody() -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    Mailbox[int](Doorbell()).put(1, loop)
