"""The files of a job: its input, plain or gzipped, and its output, which has its name once it is whole.

Until then it is `NAME.part`, whose whole lines are what has been done, whatever ended the job: `--resume` goes on after
them. So the name never stands for half a result, nor for an older one that a new job would take for its own.
"""

import contextlib
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from babelserve.lines import Line, read_line

_GZIP_MAGIC = b"\x1f\x8b"


class UsageError(Exception):
    """The command line asks for what can't be done; the message says what."""


def is_gzipped(file: BufferedReader) -> bool:
    """Whether what comes next is a gzip header; waits for the first bytes."""
    return file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)


def read_lines(file: BufferedReader, name: str) -> Iterator[Line]:
    """Yields the lines of a file that may be gzipped.

    Args:
        file: from its beginning.
        name: for messages.

    Raises:
        UsageError: it is damaged.
        OSError: it cannot be read.
    """
    if not is_gzipped(file):
        yield from map(read_line, file)
        return
    try:
        yield from map(read_line, gzip.GzipFile(fileobj=file))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{name}: is damaged gzip: {error}") from error


@dataclass(frozen=True, slots=True)
class Done:
    """What a stopped job has left.

    Attributes:
        num_lines: whole lines of its output.
        num_output_bytes: of them.
        num_input_bytes: of the lines that they translate.
        num_failed: lines among them without a translation.
    """

    num_lines: int = 0
    num_output_bytes: int = 0
    num_input_bytes: int = 0
    num_failed: int = 0


class Output:
    """A file that is written under another name until it is finished; what is no regular file is written as it is.

    Args:
        path: of the file.

    Attributes:
        part: path that is written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()  # a link stays one
        is_special = self._path.exists() and not self._path.is_file()
        self.part = self._path if is_special else self._path.with_name(self._path.name + ".part")
        self._file: BinaryIO | None = None

    def skip_done(self, lines: Iterator[Line], *, as_json: bool) -> Done:
        """Takes the lines off the input that a stopped job has translated, and says what it has left.

        Raises:
            UsageError: it was another job: with more lines, or in another format.
        """
        num_lines = num_output_bytes = num_input_bytes = num_failed = 0
        if not self.part.is_file():
            return Done()
        with self.part.open("rb") as file:
            for written in file:
                if not written.endswith(b"\n"):
                    break  # torn
                line = next(lines, None)
                if line is None:
                    raise UsageError(f"{self.part} has more lines than the input: it is another job's; remove it")
                num_lines += 1
                num_output_bytes += len(written)
                num_input_bytes += line.num_bytes
                num_failed += self._has_failed(written, line, as_json=as_json)
        return Done(num_lines, num_output_bytes, num_input_bytes, num_failed)

    def open(self, done: Done) -> BinaryIO:
        """Opens it for writing, after what was done; whatever else it holds goes. Raises OSError."""
        self._file = self.part.open("r+b" if done.num_lines else "wb")
        if done.num_lines:
            self._file.truncate(done.num_output_bytes)
            self._file.seek(done.num_output_bytes)
        return self._file

    def finish(self) -> None:
        """Gives the file its name. Raises OSError."""
        assert self._file is not None, "it is open"
        self._file.close()
        if self.part != self._path:
            self.part.replace(self._path)

    def leave(self) -> bool:
        """Closes it; returns whether it stays unfinished, with lines to go on from. For `contextlib` as for errors."""
        if self._file is None or self._file.closed:
            return False
        with contextlib.suppress(OSError):  # a full disk was complained of already
            self._file.close()
        if self.part == self._path:
            return False
        if self.part.stat().st_size == 0:
            self.part.unlink()
            return False
        return True

    def _has_failed(self, written: bytes, line: Line, *, as_json: bool) -> bool:
        if not as_json:
            return written == b"\n" and (line.error is not None or bool(line.text.strip()))
        try:
            return "error" in json.loads(written)
        except ValueError as error:
            raise UsageError(f"{self.part} was written without --json: go on without it, too") from error
