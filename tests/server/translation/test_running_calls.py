import asyncio

import pytest

from server.errors import NotServing
from server.translation.running_calls import RunningCalls
from tests.fakes import FakeClock


async def test_there_are_no_calls_at_first() -> None:
    running = RunningCalls()

    running.check()
    await running.wait_until_idle()
    await running.wait_until_quiet(0.001)


async def test_for_how_long_nobody_has_called_is_known() -> None:
    clock = FakeClock()
    running = RunningCalls(clock)
    assert running.idle_seconds == float("inf")

    with running.call():
        clock.now += 5.0
        assert running.idle_seconds == 0
    clock.now += 2.0

    assert running.idle_seconds == 2.0


async def test_idle_is_when_the_last_call_ends_however_it_ends() -> None:
    running = RunningCalls()
    waiting = asyncio.create_task(running.wait_until_idle())
    with running.call():
        with pytest.raises(KeyError), running.call():
            raise KeyError
        await asyncio.sleep(0)
        assert not waiting.done()

    await waiting


async def test_quiet_is_when_nobody_came_for_a_while() -> None:
    running = RunningCalls()
    waiting = asyncio.create_task(running.wait_until_quiet(0.05))
    for _ in range(3):
        await asyncio.sleep(0.02)
        with running.call():
            pass
        assert not waiting.done()

    await waiting


async def test_once_it_refuses_no_call_comes_in() -> None:
    running = RunningCalls()

    running.refuse()

    with pytest.raises(NotServing):
        running.check()


def test_a_call_may_be_warned_that_all_further_ones_are_refused() -> None:
    running, warnings = RunningCalls(), []
    with running.warned(lambda: warnings.append("over")):
        pass
    with running.warned(lambda: warnings.append("running")):
        running.refuse()

    assert warnings == ["running"]


def test_a_call_that_comes_too_late_to_be_warned_is_refused() -> None:
    running = RunningCalls()
    running.refuse()

    with pytest.raises(NotServing), running.warned(lambda: None):
        pytest.fail("it goes on")
