"""Parquet files: a shard is a row group, and its output is a file with two columns more."""

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from server.bulk.cell import Cell, decoded
from server.errors import SettingsError


def row_groups(files: Any, path: str, column: str, into: str) -> list[tuple[int, int]]:
    """Returns the first row group of each shard, and the one after its last.

    Args:
        files: an fsspec file system.
        path: of a file there.
        column: name of the texts'.
        into: name of the translations'.

    Raises:
        SettingsError: it is no Parquet file, has no such column of texts, or has that of the translations already.
    """
    try:
        with files.open(path, "rb") as file, pq.ParquetFile(file) as parquet:
            schema, count = parquet.schema_arrow, parquet.num_row_groups
    except (pa.ArrowException, OSError) as error:
        raise SettingsError([f"{path}: is no Parquet file: {error}"]) from error
    place = schema.get_field_index(column)  # -1 also if there are two of that name
    kind = schema.field(place).type if place >= 0 else None
    if kind is None or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise SettingsError([f"--column: {path} has no column {column!r} of texts, or several"])
    if taken := {into, f"{into}_error"} & set(schema.names):
        raise SettingsError([f"--into: {path} has {', '.join(sorted(taken))} already"])
    return [(index, index + 1) for index in range(count)]


def read_group(files: Any, path: str, index: int) -> "pa.Table":
    """Returns a row group. Raises OSError if it cannot be read."""
    try:
        with files.open(path, "rb") as file, pq.ParquetFile(file) as parquet:
            return parquet.read_row_group(index)
    except (pa.ArrowException, OSError) as error:
        raise OSError(f"{path}, row group {index}: cannot be read: {error}") from error


def sources(table: "pa.Table", column: str) -> list[Cell]:
    """Returns the text of each row."""
    texts = table[column].cast(pa.large_binary()).to_pylist()  # a file may say of any bytes that they are a text
    return [Cell(None, "the text is null") if text is None else decoded(text) for text in texts]


def joined(table: "pa.Table", into: str, outcomes: Sequence[Cell]) -> bytes:
    """Returns the output of a shard: the table with the column `into`, and one with "_error" behind that name."""
    texts = pa.array([each.text for each in outcomes], pa.string())
    errors = pa.array([each.error or None for each in outcomes], pa.string())
    table = table.append_column(into, texts).append_column(f"{into}_error", errors)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()
