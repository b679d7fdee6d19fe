"""What the commands share that take more than a model: what the caller can mend is a line and not a traceback."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

_MAX_FAULTS = 50  # lines; more of a file's faults than anybody reads


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
        # Names of files and tables are anybody's. What is not printable could clear a terminal or write over a line.
        printable = ["".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in lines]
        sys.exit(f"{command}: " + "\n".join(printable))
