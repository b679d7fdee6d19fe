import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from server.signals import reload_on_signal, stop_on_signals

SECONDS = 100.0  # far above what any of these needs; a hang fails


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    """One that nobody listens to is ignored meanwhile, or it would end the tests."""
    before = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def test_the_first_signal_is_told_and_the_second_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    exit_codes: list[int] = []
    left = asyncio.Event()

    def leave(code: int) -> None:
        exit_codes.append(code)
        left.set()

    monkeypatch.setattr(os, "_exit", leave)
    stop = stop_on_signals()

    signal.raise_signal(signal.SIGINT)
    await asyncio.wait_for(stop.wait(), SECONDS)
    assert exit_codes == []
    assert stop.is_by_hand
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(left.wait(), SECONDS)

    assert exit_codes == [128 + signal.SIGTERM]


async def test_a_hangup_asks_for_a_reload_and_ends_nothing() -> None:
    reload = reload_on_signal()

    signal.raise_signal(signal.SIGHUP)

    await asyncio.wait_for(reload.wait(), SECONDS)


async def test_an_orchestrators_signal_is_not_by_hand() -> None:
    stop = stop_on_signals()

    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(stop.wait(), SECONDS)

    assert not stop.is_by_hand
