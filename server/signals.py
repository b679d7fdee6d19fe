"""The signals that end a server, or have it read its files again."""

import asyncio
import os
import signal


class Stop(asyncio.Event):
    """Set when the server is to end; `is_by_hand` if by Ctrl-C."""

    is_by_hand = False


def stop_on_signals() -> Stop:
    """Returns an event that the first SIGTERM or SIGINT sets; the second ends the process there and then."""
    stop = Stop()

    def receive(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.is_by_hand = number == signal.SIGINT
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, receive, number)
    return stop


def reload_on_signal() -> asyncio.Event:
    """Returns an event that SIGHUP sets, which would end the process otherwise."""
    reload = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload.set)
    return reload
