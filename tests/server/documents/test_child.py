"""The child's own bounds, by readers that try to get over them. The readers and what is refused: `test_parsing*`."""

import json
import resource
import socket
import tempfile
from collections.abc import Callable
from typing import NoReturn

import pytest

from babelserve.formats.document import BadFile, Document
from server.children import Bounds, run_child
from server.documents import child

BOUNDS = Bounds(30, None)


def connect(_: bytes) -> NoReturn:
    try:
        socket.create_connection(("127.0.0.1", 1))
    except PermissionError:
        raise BadFile("has no network") from None
    raise AssertionError


def tell_time(_: bytes) -> NoReturn:
    raise BadFile(f"has {resource.getrlimit(resource.RLIMIT_CPU)[0]} s")


def nest(data: bytes) -> Document:
    return nest(data)


def write_much(_: bytes) -> Document:
    return Document("text/plain", {}, lambda _: bytes(child.MAX_WRITTEN_BYTES + 1))


READERS: dict[str, Callable[[bytes], Document]] = {
    "connect": connect,
    "time": tell_time,
    "nest": nest,
    "much": write_much,
}


def run_reader(name: str, function: str, *arguments: int | str) -> None:
    setattr(child, "READERS", READERS)  # noqa: B010 # this process has no other readers
    getattr(child, function)(name, *arguments)


async def fault_of(name: str, function: str) -> str | None:
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
        given.write(b"[]")
        given.flush()
        files = [source.fileno(), output.fileno()] + [given.fileno()] * (function == "write")
        call = [name, function, *files, *["de"] * (function == "write")]
        ended = await run_child(f"{__name__}:run_reader", call, BOUNDS, pass_fds=files)
    fault: str | None = json.loads(ended.output)["fault"]
    return fault


@pytest.mark.parametrize(
    ("name", "function", "fault"),
    [
        ("connect", "read", "has no network"),
        ("time", "read", "has 30 s"),
        ("nest", "read", "is nested too deep"),
        ("much", "write", f"cannot be written, with its {child.MAX_WRITTEN_BYTES + 1} bytes: File too large"),
        ("much", "read", None),
    ],
)
async def test_a_reader_is_kept_within_bounds(name: str, function: str, fault: str | None) -> None:
    assert await fault_of(name, function) == fault
