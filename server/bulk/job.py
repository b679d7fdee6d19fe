"""What a job is: its inputs, its options and its shards. A job's folder says which job it is, and what is done."""

import contextlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from server.bulk import lines
from server.bulk.cell import Cell
from server.errors import SettingsError
from server.settings.settings import Settings

FORMATS = {"txt": "txt", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "parquet": "parquet"}  # by suffixes
_DESCRIPTION = "_job.json"
_MODELS = "_models.json"
_FINISHED = "_SUCCESS"
# The name of an empty file for each shard that has rows with errors: the shard, and how many. One listing tells all of
# them, and as the name has no suffix, no glob takes the file for data.
_FAILED = "_failed-"
_COUNT = re.compile(f"{_FAILED}([0-9]+-[0-9]+)-([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A part of an input file, and where its output belongs.

    Attributes:
        url: of the input.
        start: its first byte, or row group.
        end: the one after its last.
        output: URL.
    """

    url: str
    start: int
    end: int
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be translated, how, and where to.

    Attributes:
        inputs: URLs or paths, which may have wildcards.
        output: URL or path of a folder, without a slash at its end.
        form: a value of `FORMATS`.
        column: of the texts: a number from 1 for TSV, a name for JSONL and Parquet.
        into: name of the translations' column.
        shard_bytes: of a shard of lines.
        request: a serialized `TranslateRequest` without texts: languages and options.
        settings: of the models, as the server's.
    """

    inputs: Sequence[str]
    output: str
    form: str
    column: str
    into: str
    shard_bytes: int
    request: bytes
    settings: Settings

    def plan(self) -> list[Shard]:
        """Returns all shards in the order of the inputs.

        Raises:
            SettingsError: an input is missing or not of the format, or the output another job's or not to be written.
        """
        shards: list[Shard] = []
        sizes: list[tuple[str, int]] = []
        for number, (files, path) in enumerate(self._files()):
            url = files.unstrip_protocol(path)
            sizes.append((url, files.size(path)))
            for index, (start, end) in enumerate(self._parts(files, path, sizes[-1][1])):
                name = f"{number:05d}-{index:06d}.{self.form}"
                shards.append(Shard(url=url, start=start, end=end, output=f"{self.output}/{name}"))
        options = {"format": self.form, "column": self.column, "into": self.into, "request": self.request.hex()}
        self._claim(_DESCRIPTION, {"inputs": sizes, "shard_bytes": self.shard_bytes, **options})
        return shards

    def claim_models(self, identities: Sequence[str]) -> None:
        """Notes which models translate this job. Raises SettingsError if it was begun with others."""
        self._claim(_MODELS, sorted(identities))

    def left(self, shards: Sequence[Shard]) -> list[Shard]:
        """Returns the shards that have no output yet."""
        files, folder = url_to_fs(self.output)
        found = files.ls(folder, detail=True) if files.exists(folder) else []
        done = {_name(each["name"]) for each in found if each["type"] == "file"}
        return [shard for shard in shards if _name(shard.output) not in done]

    def num_failed(self) -> int:
        """Returns how many rows of the written shards have errors, whichever run wrote them. Raises OSError.

        A run that was killed between a count and its shard may have left another count than the next run. The greater
        one counts.
        """
        files, folder = url_to_fs(self.output)
        files.invalidate_cache(folder)  # other processes have written, too
        found = filter(None, (_COUNT.fullmatch(_name(path)) for path in files.ls(folder, detail=False)))
        failed: dict[str, int] = {}
        for count in found:
            failed[count[1]] = max(int(count[2]), failed.get(count[1], 0))
        return sum(failed.values())

    def finish(self) -> None:
        """Marks the job as done, once every shard has its output, and removes what killed runs have left behind."""
        files, folder = url_to_fs(self.output)
        if isinstance(files, LocalFileSystem):
            for pattern in (f".*[0-9].{self.form}.*", f".{_FAILED}*.*"):
                for unfinished in Path(folder).glob(pattern):
                    unfinished.unlink(missing_ok=True)
        _write_whole(f"{self.output}/{_FINISHED}", b"")

    def read(self, shard: Shard) -> tuple[Any, list[Cell]]:
        """Returns a shard's rows in their format, and the text of each. Raises OSError."""
        files, path = url_to_fs(shard.url)
        if self.form == "parquet":
            from server.bulk import parquet  # noqa: PLC0415  # pyarrow is large, and other formats need none

            table = parquet.read_group(files, path, shard.start)
            return table, parquet.sources(table, self.column)
        found = lines.read_lines(files, path, shard.start, shard.end)
        return found, lines.sources(self._line_format(), found)

    def write(self, shard: Shard, rows: Any, outcomes: Sequence[Cell]) -> None:
        """Writes a shard's output, whole or not at all, and how many of its rows have errors. Raises OSError."""
        if self.form == "parquet":
            from server.bulk import parquet  # noqa: PLC0415

            data = parquet.joined(rows, self.into, outcomes)
        else:
            data = lines.joined(self._line_format(), rows, outcomes)
        if failed := sum(bool(each.error) for each in outcomes):  # first, as a shard that is written is left alone
            number = _name(shard.output).partition(".")[0]
            _write_whole(f"{self.output}/{_FAILED}{number}-{failed}", b"")
        _write_whole(shard.output, data)

    def _line_format(self) -> lines.LineFormat:
        if self.form == "tsv":
            return lines.Tsv(int(self.column))
        return lines.Jsonl(self.column, self.into) if self.form == "jsonl" else lines.Text()

    def _files(self) -> Iterator[tuple[Any, str]]:
        for each in self.inputs:
            files, path = _opened(each)
            found = sorted(files.glob(path)) if set("*?[") & set(path) and not files.isfile(path) else [path]
            if not found or not all(files.isfile(one) for one in found):
                raise SettingsError([f"{each}: there is no such file"])
            yield from ((files, one) for one in found)

    def _parts(self, files: Any, path: str, size: int) -> Iterator[tuple[int, int]]:
        if self.form != "parquet":
            return lines.ranges(size, self.shard_bytes)
        from server.bulk import parquet  # noqa: PLC0415

        return iter(parquet.row_groups(files, path, self.column, self.into))

    def _claim(self, name: str, content: Any) -> None:
        """Writes a file that says what this job is, or compares it with that of the job which began here."""
        files, folder = _opened(self.output)
        text = json.dumps(content, indent=1).encode()
        if files.exists(f"{folder}/{name}"):
            if not files.isfile(f"{folder}/{name}"):  # a FIFO would be waited for
                raise SettingsError([f"{self.output}/{name}: is no file"])
            if files.cat_file(f"{folder}/{name}", start=0, end=len(text) + 1) != text:
                raise SettingsError(
                    [f"{self.output}/{name}: another job has begun there: other inputs, options or models"]
                )
            return
        try:
            files.makedirs(folder, exist_ok=True)
            _write_whole(f"{self.output}/{name}", text)
        except OSError as error:
            raise SettingsError([f"--out: {self.output} cannot be written: {error.strerror or error}"]) from error


def _opened(url: str) -> tuple[Any, str]:
    """Returns a file system, and a path there. Raises SettingsError if the URL is of none that is known."""
    try:
        files, path = url_to_fs(url)
    except ValueError as error:
        raise SettingsError([f"{url}: {error}"]) from error
    return files, path


def _write_whole(url: str, data: bytes) -> None:
    """Writes a file that appears whole or not at all. An object store's own way to write does so; a disk's does not."""
    files, path = url_to_fs(url)
    if not isinstance(files, LocalFileSystem):
        files.pipe_file(path, data)
        return
    unfinished = Path(path).with_name(f".{_name(path)}.{uuid.uuid4().hex}")
    try:
        with unfinished.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
