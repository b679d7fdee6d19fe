"""What the commands share that take more than a model: their flags, and texts of strangers on a terminal."""

import argparse
import math
from collections.abc import Callable

_MAX_NAME_CHARACTERS = 128  # as in server.bundle.manifest_file
NAMES = f"1 to {_MAX_NAME_CHARACTERS} printable characters"


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses a command line. Of `--flag=--` an older Python makes an empty list (its issue 109475): a fault as well."""
    arguments = parser.parse_args()
    for name, value in vars(arguments).items():
        if value == [] and value is not parser.get_default(name):
            parser.error(f"argument {name.replace('_', '-')}: -- is no value")
    return arguments


def printable(text: str) -> str:
    """Returns a text of a stranger as one line that a terminal shows as it is and does not obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


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
