"""The inputs that are kept: a file for each target, a line for each input, which is written as Python writes bytes.

Text, so that a diff shows what was added. A line that begins with `#` says what the next one is; the inputs without
such a line are those that libFuzzer kept because each reaches code that no other does.
"""

from collections.abc import Iterable
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def read_inputs(target: str) -> list[bytes]:
    """Returns the inputs of a target, in the file's order."""
    lines = (CORPUS / f"{target}.txt").read_text(encoding="ascii").splitlines()
    return [_parse(line) for line in lines if line and not line.startswith("#")]


def add_inputs(target: str, inputs: Iterable[bytes]) -> int:
    """Adds those that are not there yet, shortest first; returns how many these are."""
    new = sorted(set(inputs) - {*read_inputs(target), b""}, key=lambda data: (len(data), data))
    with (CORPUS / f"{target}.txt").open("a", encoding="ascii") as file:
        file.writelines(f"{_format(data)}\n" for data in new)
    return len(new)


def _parse(line: str) -> bytes:
    return line.encode("ascii").decode("unicode_escape").encode("latin-1")


def _format(data: bytes) -> str:
    text = data.decode("latin-1").encode("unicode_escape").decode("ascii")
    return f"\\x23{text[1:]}" if text.startswith("#") else text
