"""Files whose rows are lines: plain text, TSV and JSONL. A shard is a range of bytes.

A line belongs to the shard in which it begins, and a shard is read without a look at the others: all that it needs to
know is whether the byte before its range ends a line.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from server.bulk.cell import Cell, decoded, encoded

MAX_ROW_BYTES = 4 << 20  # a longer line is a row with an error; no text that a model takes is as long
_CHUNK_BYTES = 1 << 16  # read at once to find the end of a shard's last line
_BLANKS = str.maketrans("\t\n\r", "   ")


def ranges(num_bytes: int, shard_bytes: int) -> Iterator[tuple[int, int]]:
    """Yields the first byte of each shard of a file, and the one after its last."""
    for start in range(0, num_bytes, shard_bytes):
        yield start, min(start + shard_bytes, num_bytes)


def read_lines(files: Any, path: str, start: int, end: int) -> list[bytes]:
    """Returns the lines that begin in a range of bytes, without their ends. Of a line that is too long it has a part.

    Args:
        files: an fsspec file system.
        path: of a file there.
        start: first byte of the range.
        end: the byte after the last; at most the file's size.

    Raises:
        OSError: the file cannot be read.
    """
    data: bytes = files.cat_file(path, start=max(0, start - 1), end=end)
    if start:
        _, newline, data = data.partition(b"\n")
        if not newline:
            return []
    if not data:
        return []
    if not data.endswith(b"\n"):
        data += _rest_of_line(files, path, end)
    return data.removesuffix(b"\n").split(b"\n")


def _rest_of_line(files: Any, path: str, start: int) -> bytes:
    """Returns what a line has from a byte on; of a line that is too long not all of it."""
    size, found = files.size(path), bytearray()
    for at in range(start, size, _CHUNK_BYTES):
        if len(found) > MAX_ROW_BYTES:
            break
        head, newline, _ = files.cat_file(path, start=at, end=min(at + _CHUNK_BYTES, size)).partition(b"\n")
        found += head
        if newline:
            break
    return bytes(found)


class LineFormat(Protocol):
    """How a line holds a text, and takes its translation."""

    def source(self, line: bytes) -> Cell:
        """Returns the text that a line has to be translated."""

    def translated(self, line: bytes, outcome: Cell) -> bytes:
        """Returns a line with the outcome of its text, without a line end."""


class Text:
    """A line is a text. One that could not be translated becomes an empty line."""

    def source(self, line: bytes) -> Cell:
        """See `LineFormat`."""
        return decoded(line.removesuffix(b"\r"))

    def translated(self, line: bytes, outcome: Cell) -> bytes:  # noqa: ARG002
        """See `LineFormat`."""
        return (outcome.text or "").translate(_BLANKS).encode()


class Tsv:
    """A line has columns between tabs, and gets two more: the translation, and the error.

    Args:
        column: the number of the text's, from 1.
    """

    def __init__(self, column: int) -> None:
        self._column = column

    def source(self, line: bytes) -> Cell:
        """See `LineFormat`."""
        columns = line.removesuffix(b"\r").split(b"\t", self._column)
        if len(columns) < self._column:
            return Cell(None, f"the row has {len(columns)} columns, not {self._column}")
        return decoded(columns[self._column - 1])

    def translated(self, line: bytes, outcome: Cell) -> bytes:
        """See `LineFormat`."""
        added = [(outcome.text or "").translate(_BLANKS), outcome.error.translate(_BLANKS)]
        return b"\t".join([line.removesuffix(b"\r"), *(each.encode() for each in added)])


class Jsonl:
    """A line is a JSON object, and gets one member more, or two if it could not be translated; it stays as it is else.

    Args:
        column: the name of the text's member.
        into: that of the translation's; with "_error" behind it, that of the error's.
    """

    def __init__(self, column: str, into: str) -> None:
        self._column = column
        self._into = into

    def source(self, line: bytes) -> Cell:
        """See `LineFormat`."""
        row = _object(line)
        if row is None:
            return Cell(None, "the row is no JSON object")
        for name in (self._into, f"{self._into}_error"):
            if name in row:
                return Cell(None, f"the row has {name!r} already")
        text = row.get(self._column)
        if not isinstance(text, str):
            return Cell(None, f"{self._column!r} is no text in the row")
        return encoded(text)

    def translated(self, line: bytes, outcome: Cell) -> bytes:
        """See `LineFormat`."""
        row = _object(line)
        given = {self._into: outcome.text} | ({f"{self._into}_error": outcome.error} if outcome.error else {})
        added = {name: value for name, value in given.items() if name not in (row or {})}
        members = json.dumps(added, ensure_ascii=False).encode()[1:]
        if row is None:
            return b"{" + members
        return line[: line.rindex(b"}")] + (b", " if row and added else b"") + members


def sources(form: LineFormat, lines: Sequence[bytes]) -> list[Cell]:
    """Returns the text of each line, and the error of one that is too long."""
    long = Cell(None, f"the row is longer than {MAX_ROW_BYTES} bytes")
    return [long if len(line) > MAX_ROW_BYTES else form.source(line) for line in lines]


def joined(form: LineFormat, lines: Sequence[bytes], outcomes: Sequence[Cell]) -> bytes:
    """Returns the output of a shard. A line that is too long is left out of its row."""
    whole = (b"" if len(line) > MAX_ROW_BYTES else line for line in lines)
    pairs = zip(whole, outcomes, strict=True)
    return b"".join(form.translated(line, outcome) + b"\n" for line, outcome in pairs)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
