"""Runs `babelserve-translate` as a user does: in a process of its own."""

import subprocess
import sys
from pathlib import Path

from tests.babelserve.scripted_server import ScriptedServer

ROOT = Path(__file__).parents[2]


def command(server: ScriptedServer, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "babelserve", "--address", server.address, *arguments]


def translate(server: ScriptedServer, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(server, *arguments), input=stdin, capture_output=True, cwd=ROOT, timeout=50, check=False
    )
