"""`babelserve-translate` at a terminal, with texts, errors and names that would have it do things."""

import contextlib
import json
import os
import pty
import subprocess
import threading
from collections.abc import Callable

import grpc
import pytest

from tests.babelserve.command_line import ROOT, command, translate
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService

# A title, a cleared screen by both kinds of CSI, a line that is written over; the server makes capitals of them.
HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b2J\rb\x7fc"
SHOWN = r"A\x1b]0;TITLE\x07\x1b[2J\x9b2J\rB\x7fC"
TOLD = r"a\x1b]0;title\x07\x1b[2J\x9b2J\rb\x7fc"

Terminal = Callable[..., str]


@pytest.fixture
def at_terminal(server: ScriptedServer) -> Terminal:
    """Runs the command with a terminal for all that it writes; returns what that has got."""

    def run(*arguments: str, stdin: str = "") -> str:
        shown, own = pty.openpty()
        parts: list[bytes] = []

        def read() -> None:
            with contextlib.suppress(OSError):  # the end of a pseudo-terminal
                while part := os.read(shown, 4096):
                    parts.append(part)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            arguments = tuple(each.replace("TERMINAL", os.ttyname(own)) for each in arguments)
            line = command(server, "--target", "de", *arguments)
            subprocess.run(line, input=stdin.encode(), stdout=own, stderr=own, cwd=ROOT, timeout=50, check=False)
        finally:
            os.close(own)
            reader.join()
            os.close(shown)
        return b"".join(parts).decode().replace("\r\n", "\n")

    return run


@pytest.mark.parametrize("flags", [[], ["--output", "TERMINAL"]])
def test_translations_are_shown_without_what_a_terminal_obeys(at_terminal: Terminal, flags: list[str]) -> None:
    assert at_terminal(*flags, stdin=f"{HOSTILE}\n\u00e4 \u4f60\n") == f"{SHOWN}\n\u00c4 \u4f60\n"


def test_so_are_texts_given_as_arguments(at_terminal: Terminal) -> None:
    assert at_terminal(HOSTILE, "two\nlines") == f"{SHOWN}\nTWO\nLINES\n"


@pytest.mark.parametrize("flags", [[], ["--output", "TERMINAL"]])
def test_so_are_files(at_terminal: Terminal, flags: list[str]) -> None:
    assert at_terminal("--format", "markdown", *flags, stdin=HOSTILE).rstrip("\n") == SHOWN


def test_json_is_shown_as_json(at_terminal: Terminal) -> None:
    shown = at_terminal("--json", HOSTILE)

    assert shown.removesuffix("\n").isprintable()
    assert json.loads(shown)["text"] == HOSTILE.upper()


def test_a_pipe_gets_the_bytes_of_translations(server: ScriptedServer) -> None:
    assert translate(server, "--target", "de", HOSTILE).stdout == HOSTILE.upper().encode() + b"\n"


def test_errors_are_one_line_each_even_in_a_file(server: ScriptedServer, service: ScriptedService) -> None:
    text = translate(server, "--target", "de", f"!INTERNAL {HOSTILE}\nforged")
    service.failures.append((grpc.StatusCode.NOT_FOUND, f"{HOSTILE}\nforged", ()))
    call = translate(server, "--target", "de", "a")
    service.target_languages, service.language_pairs = [HOSTILE, "b\nc"], []
    choice = translate(server, "a")
    usage = translate(server, "--target", "de", "--in-flight", HOSTILE, "a")
    path = translate(server, "--target", "de", "--input", f"/none/{HOSTILE}")

    assert text.stderr.decode() == f"babelserve-translate: text 1: INTERNAL: {TOLD}\\nforged\n"
    assert call.stderr.decode() == f"babelserve-translate: refused by the server: {TOLD}\\nforged\n"
    assert choice.stderr.decode().endswith(f"the server has: {TOLD}, b\\nc\n")
    for done in (usage, path):
        assert done.returncode == 2
        assert done.stderr.decode().replace("\n", "").isprintable()


def test_names_of_models_are_shown_so_too(at_terminal: Terminal, service: ScriptedService) -> None:
    service.language_pairs = [(HOSTILE, "de")]

    assert at_terminal("--list-models").splitlines()[1].endswith(f"  {TOLD} to de")
    assert json.loads(at_terminal("--list-models", "--json"))["language_pairs"] == [[HOSTILE, "de"]]
