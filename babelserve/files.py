"""The files of a job: its input, plain or gzipped, and its output, which has its name once it is whole.

Until then it is `NAME.part`, whose whole lines are what has been done, whatever ended the job: `--resume` goes on after
them. So the name never stands for half a result, nor for an older one that a new job would take for its own.
"""

import gzip
import json
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from babelserve.lines import Line, lines_of
from babelserve.outputs import UsageError, check_at, claim, close_part, is_gzip, places, whole_lines, write_whole

GZIP_MAGIC = b"\x1f\x8b"


def is_gzipped(file: BufferedReader) -> bool:
    """Whether what comes next is a gzip header; waits for the first bytes."""
    return file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)


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
        yield from lines_of(file)
        return
    try:
        yield from lines_of(cast("BinaryIO", gzip.GzipFile(fileobj=file)))
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
        path: of the file. If it ends in ".gz", the file is gzipped once it is finished.

    Attributes:
        part: path that is written until then; None for what is no regular file.

    Raises:
        UsageError, OSError: as `places`.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.part = places(path)
        self._is_gzip = is_gzip(path)
        self._file: BinaryIO | None = None

    @property
    def file(self) -> BinaryIO:
        """What takes the lines, once it is open."""
        assert self._file is not None, "it is open"
        return self._file

    def open(self, lines: Iterator[Line], *, resume: bool, as_json: bool) -> Done:
        """Opens it for writing; returns what a stopped job has left there.

        Args:
            lines: the input. The lines that a stopped job has translated are taken off it.
            resume: whether to go on after what was done; else it goes, as whatever else the file holds.
            as_json: whether the lines are written as JSON.

        Raises:
            UsageError: another job has it, or what is there is another job's: with more lines, or in another format.
            OSError: it cannot be opened.
        """
        if self.part is None:
            self._file = self._path.open("wb")
            return Done()
        file = claim(self.part)
        try:
            done = _skip_done(file, self.part, lines, as_json=as_json) if resume else Done()
            file.truncate(done.num_output_bytes)
            file.seek(done.num_output_bytes)
        except BaseException:
            file.close()
            raise
        self._file = file
        return done

    def finish(self) -> None:
        """Gives the file its name. Raises OSError; UsageError if something stands in the way."""
        file = self.file
        file.flush()
        if self.part is not None:
            check_at(file, self.part)
        if self.part is not None and self._is_gzip:
            file.seek(0)
            write_whole(self._path, self.part, lambda whole: shutil.copyfileobj(file, whole), gzipped=True)
            self.part.unlink()
        elif self.part is not None:
            self.part.replace(self._path)
        file.close()

    def leave(self) -> bool:
        """Closes it; returns whether it stays unfinished, with lines to go on from. For `contextlib` as for errors."""
        if self._file is None or self._file.closed:
            return False
        return close_part(self._file, self.part)


def _skip_done(file: BinaryIO, part: Path, lines: Iterator[Line], *, as_json: bool) -> Done:
    """Takes the lines off the input that a stopped job has translated. Raises UsageError if it was another job."""
    num_lines = num_output_bytes = num_input_bytes = num_failed = 0
    for written in whole_lines(file):
        line = next(lines, None)
        if line is None:
            raise UsageError(f"{part} has more lines than the input: it is another job's; remove it")
        num_lines += 1
        num_output_bytes += len(written)
        num_input_bytes += line.num_bytes
        facts = _facts(written)
        if as_json and not isinstance(facts.get("text"), str):
            raise UsageError(f"{part} was written without --json: go on without it, too")
        if not as_json and (
            {"text", "model_version"} <= facts.keys() or facts.keys() == {"text", "hash", "translation"}
        ):
            raise UsageError(f"{part} was written with --json or --format: go on with it, too")
        num_failed += "error" in facts if as_json else written == b"\n" and _wants_translation(line)
    return Done(num_lines, num_output_bytes, num_input_bytes, num_failed)


def _wants_translation(line: Line) -> bool:
    return line.error is not None or bool(line.text.strip())


def _facts(written: bytes) -> dict[str, object]:
    """Returns the object that a line of JSON holds; empty for any other line."""
    if not written.startswith(b"{"):
        return {}
    try:
        facts = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}
