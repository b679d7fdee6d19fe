"""Real processes; their functions are here."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from server.children import Bounds, isolate, run_child
from tests.children import children
from tests.server.models.administered import until

HERE, BOUNDS = "tests.server.test_children", Bounds(30, 256 << 20)
FORBIDDEN: dict[str, Callable[[], object]] = {
    "a connection": lambda: socket.create_connection(("127.0.0.1", 1)),
    "another program": lambda: subprocess.run(["true"], check=False),
    "a signal to another process": lambda: os.kill(os.getppid(), 0),
}


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words))


def end_by(number: int) -> None:
    os.kill(os.getpid(), number)


def sleep() -> None:
    signal.pause()


def take_memory(num_bytes: int) -> None:
    try:
        say(str(len(bytearray(num_bytes))))
    except MemoryError:
        say("no memory")


def write_into(file: int) -> None:
    os.write(file, b"written")


def try_in_isolation(what: str) -> None:
    assert isolate()
    try:
        FORBIDDEN[what]()
    except PermissionError:
        say("refused")


async def test_a_child_runs_a_function_with_arguments_and_files_of_its_parent(tmp_path: Path) -> None:
    ended = await run_child(f"{HERE}:say", ["hello", "you"], BOUNDS)
    with (tmp_path / "file").open("wb") as file:
        await run_child(f"{HERE}:write_into", [file.fileno()], BOUNDS, pass_fds=[file.fileno()])

    assert ended == (b"hello you", 0, False)
    assert (tmp_path / "file").read_bytes() == b"written"


async def test_memory_beyond_the_bound_is_refused() -> None:
    assert (await run_child(f"{HERE}:take_memory", [16 << 20], BOUNDS)).output == b"16777216"
    assert (await run_child(f"{HERE}:take_memory", [512 << 20], BOUNDS)).output == b"no memory"


async def test_it_is_killed_at_its_deadline() -> None:
    ended = await run_child(f"{HERE}:sleep", [], BOUNDS._replace(seconds=1))

    assert ended.is_late
    assert ended.code == -signal.SIGKILL


@pytest.mark.parametrize(
    ("function", "arguments", "how"),
    [("end_by", [signal.SIGSEGV], "was ended by SIGSEGV"), ("absent", [], "ended with exit code 1")],
)
async def test_how_it_has_ended_is_said(function: str, arguments: list[int], how: str) -> None:
    assert (await run_child(f"{HERE}:{function}", arguments, BOUNDS)).how == how


async def test_who_cancels_leaves_no_process() -> None:
    before = children()
    running = asyncio.create_task(run_child(f"{HERE}:sleep", [], BOUNDS))
    await until(lambda: bool(children() - before))
    begun = children() - before
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert not children() & begun


@pytest.mark.parametrize("what", FORBIDDEN)
async def test_isolation_keeps_from_network_programs_and_processes(what: str) -> None:
    assert (await run_child(f"{HERE}:try_in_isolation", [what], BOUNDS)).output == b"refused"
