"""What a terminal would obey is shown as an escape: texts, errors and names come from others.

A terminal takes commands from what is written to it: it changes its title, clears the screen, moves back in the line.
"""

import os
import re
import sys
from pathlib import Path
from typing import BinaryIO

_EXIT_BROKEN_PIPE = 141  # as a shell reports a process that SIGPIPE has ended

# All control characters but tabs and line ends, and all characters that change the direction of the text beside them.
# Letters that are written from right to left stay, and so do the characters that join letters or emoji.
_OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def in_one_line(text: str) -> str:
    """Returns a text of others for a line that is ours: what cannot be printed, line ends included, is escaped."""
    return text if text.isprintable() else "".join(each if each.isprintable() else _escape(each) for each in text)


def write_shown(file: BinaryIO, data: bytes) -> None:
    """Writes to a file as it is, and to a terminal without what that would obey. Raises OSError."""
    if file.isatty():
        data = _OBEYED.sub(lambda found: _escape(found[0]), data.decode(errors="backslashreplace")).encode()
    file.write(data)


def check_streams(*needed: str) -> None:
    """Refuses a standard stream that is needed and closed. Python has None in its place.

    What is told goes nowhere if standard error is closed. `print` would write it to standard output, among the results.

    Args:
        needed: "stdin", "stdout" or both.

    Raises:
        OSError: one of them is closed.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # until the process ends
    for name in needed:
        if getattr(sys, name) is None:
            raise OSError(f"{name} is closed")


def drop_output() -> int:
    """Returns the exit code after the output's reader went away.

    Python flushes standard output once more at its end, and would complain about the same pipe again.
    """
    if sys.stdout is not None:  # the reader was that of an --output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _EXIT_BROKEN_PIPE


def _escape(character: str) -> str:
    return ascii(character)[1:-1]
