import asyncio

import pytest

from server.errors import NotServing
from server.translation.traffic import Traffic
from tests.fakes import FakeClock


async def test_there_are_no_calls_at_first() -> None:
    traffic = Traffic()

    traffic.check()
    await traffic.wait_until_idle()
    await traffic.wait_until_quiet(0.001)


async def test_for_how_long_nobody_has_called_is_known() -> None:
    clock = FakeClock()
    traffic = Traffic(clock)
    assert traffic.idle_seconds == float("inf")

    with traffic.call():
        clock.now += 5.0
        assert traffic.idle_seconds == 0
    clock.now += 2.0

    assert traffic.idle_seconds == 2.0


async def test_idle_is_when_the_last_call_ends_however_it_ends() -> None:
    traffic = Traffic()
    waiting = asyncio.create_task(traffic.wait_until_idle())
    with traffic.call():
        with pytest.raises(KeyError), traffic.call():
            raise KeyError
        await asyncio.sleep(0)
        assert not waiting.done()

    await waiting


async def test_quiet_is_when_nobody_came_for_a_while() -> None:
    traffic = Traffic()
    waiting = asyncio.create_task(traffic.wait_until_quiet(0.05))
    for _ in range(3):
        await asyncio.sleep(0.02)
        with traffic.call():
            pass
        assert not waiting.done()

    await waiting


async def test_once_it_refuses_no_call_comes_in() -> None:
    traffic = Traffic()

    traffic.refuse()

    with pytest.raises(NotServing):
        traffic.check()
