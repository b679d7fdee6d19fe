import os
import pty
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from babelserve.terminal import in_one_line, write_shown

# A title, a cleared screen by both kinds of CSI, a line that is written over, a bell, a delete, a reordered line.
HOSTILE = "\x1b]0;title\x07 \x1b[2J \x9b2J a\rb \x7f \u202eabc \u2066"
SHOWN = r"\x1b]0;title\x07 \x1b[2J \x9b2J a\rb \x7f \u202eabc \u2066"


@pytest.fixture
def terminal() -> Iterator[tuple[BinaryIO, int]]:
    """A terminal to write to, and where to read what it has got."""
    shown, own = pty.openpty()
    tty.setraw(own)
    with os.fdopen(own, "wb", buffering=0) as file:
        yield file, shown
    os.close(shown)


def test_a_terminal_gets_nothing_that_it_would_obey(terminal: tuple[BinaryIO, int]) -> None:
    file, shown = terminal

    write_shown(file, HOSTILE.encode() + b"\xff")

    assert os.read(shown, 1000).decode() == SHOWN + r"\xff"


def test_a_terminal_gets_texts_of_all_scripts_as_they_are(terminal: tuple[BinaryIO, int]) -> None:
    file, shown = terminal
    text = "\u00dc\u00a0\u4f60\u3000\u0646\u200c\u0627\u200f \U0001f469\u200d\U0001f4bb e\u0301\tx\n"

    write_shown(file, text.encode())

    assert os.read(shown, 1000).decode() == text


def test_a_file_gets_all_bytes_as_they_are(tmp_path: Path) -> None:
    data = bytes(range(256)) + HOSTILE.encode()
    with (tmp_path / "out").open("wb") as file:
        write_shown(file, data)

    assert (tmp_path / "out").read_bytes() == data


def test_a_line_stays_one() -> None:
    assert in_one_line(HOSTILE) == SHOWN
    assert in_one_line("a\nb\u2028c\x00\ud800") == r"a\nb\u2028c\x00\ud800"
    assert in_one_line("\u00fc \u4f60\\n") == "\u00fc \u4f60\\n"
