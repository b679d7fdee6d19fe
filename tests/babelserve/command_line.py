"""Runs `babelserve-translate` as a user does: in a process of its own."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from babelserve.v1 import translation_pb2
from tests.babelserve.scripted_server import ScriptedServer

ROOT = Path(__file__).parents[2]


def command(server: ScriptedServer, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "babelserve", "--address", server.address, *arguments]


def translate(server: ScriptedServer, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(server, *arguments), input=stdin, capture_output=True, cwd=ROOT, timeout=50, check=False
    )


def with_closed(closing: str, command: Sequence[str]) -> tuple[int, bytes, bytes]:
    """Runs a command with a stream that the shell closes (`2>&-`); returns its exit code, and what the others get."""
    shell = ["sh", "-c", f'exec "$@" {closing}', "sh", *command]
    done = subprocess.run(shell, capture_output=True, cwd=ROOT, timeout=50, check=False)
    return done.returncode, done.stdout, done.stderr


def without_reader(command: Sequence[str]) -> tuple[int, bytes]:
    """Runs a command whose output nobody reads; returns its exit code, and what it says on standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT, env=buffered, timeout=50, check=False
    )
    os.close(writer)
    return done.returncode, done.stderr


@contextlib.contextmanager
def stopped_at_half(server: ScriptedServer, source: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a job of 50 lines, and yields it when the server has line 20, which it keeps until it closes."""
    source.write_text("".join(f"line {number}\n" for number in range(50)))
    at_half = threading.Event()

    def stop_at_half(request: translation_pb2.TranslateRequest) -> None:
        if request.contents[0] == "line 20":
            at_half.set()
            server.service.is_closing.wait()

    server.service.before_answer = stop_at_half
    with subprocess.Popen(command(server, *flags), cwd=ROOT, stderr=subprocess.PIPE) as process:
        assert at_half.wait(30)
        yield process
