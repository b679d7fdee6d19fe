"""What the commands share that take more than a model: flags, and faults as lines that a terminal shows."""

import argparse
import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

_MAX_FAULTS = 50  # lines; more of a file's faults than anybody reads
_MAX_NAME_CHARACTERS = 128  # as in server.bundle.manifest_file
NAMES = f"1 to {_MAX_NAME_CHARACTERS} printable characters"


class Parser(argparse.ArgumentParser):
    """A parser whose errors repeat what it was given without what a terminal would obey."""

    def error(self, message: str) -> NoReturn:
        """See `argparse.ArgumentParser.error`."""
        super().error(printable(message))


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses a command line. Of `--flag=--` an older Python makes an empty list (its issue 109475): a fault as well."""
    arguments = parser.parse_args()
    for name, value in vars(arguments).items():
        if value == [] and value is not parser.get_default(name):
            parser.error(f"argument {name.replace('_', '-')}: -- is no value")
    return arguments


@contextlib.contextmanager
def told(command: str, folder: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Ends the command with what the caller can mend, a line for each fault.

    Args:
        command: its name.
        folder: where the file is if an error does not name it, as of a full disk.
        kinds: of errors. Others are faults of ours.

    Raises:
        SystemExit: with the faults.
    """
    try:
        yield
    except kinds as error:
        reason = error.strerror if isinstance(error, OSError) and not error.filename else None
        lines = (f"{folder}: {reason}" if reason else str(error)).split("\n")
        if len(lines) > _MAX_FAULTS:
            lines[_MAX_FAULTS:] = [f"and {len(lines) - _MAX_FAULTS} more"]
        sys.exit(f"{command}: " + "\n".join(map(printable, lines)))


def printable(text: str) -> str:
    """Returns a text of a stranger as one line that a terminal shows as it is and does not obey."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def number(least: float, most: float) -> Callable[[str], float]:
    """Returns a type of arguments: a number from `least` to `most`."""

    def value(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least:g} to {most:g}")
        return found

    return value


def name(text: str) -> str:
    """Returns an argument that a manifest may have for a name or version."""
    if not is_name(text):
        raise argparse.ArgumentTypeError(f"{text[:_MAX_NAME_CHARACTERS]!r} is not {NAMES}")
    return text


def is_name(text: str) -> bool:
    """Whether a manifest may have a text for a name or version: it must be some of `NAMES`."""
    return text.isprintable() and 0 < len(text) <= _MAX_NAME_CHARACTERS
