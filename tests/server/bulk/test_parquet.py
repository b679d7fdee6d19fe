import struct
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from server.bulk.cell import Cell
from server.errors import SettingsError
from tests.server.bulk.parts import job_of

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")
FILES = LocalFileSystem()
TABLE = {"id": [1, 2, 3], "text": ["a", None, "c"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(TABLE), path, row_group_size=2)
    return path


def test_each_row_group_becomes_a_file_with_two_columns_more(file: Path, tmp_path: Path) -> None:
    job = job_of(tmp_path, inputs=[str(file)], form="parquet", into="de")
    for shard in job.plan():
        table, cells = job.read(shard)
        job.write(shard, table, [Cell(cell.text.upper()) if cell.text else cell for cell in cells])

    assert len(job.plan()) == 2
    assert pq.read_table(tmp_path / "out" / "00000-000000.parquet").to_pydict() == {
        "id": [1, 2],
        "text": ["a", None],
        "de": ["A", None],
        "de_error": [None, "the text is null"],
    }
    assert pq.read_table(tmp_path / "out" / "00000-000001.parquet").to_pydict()["de"] == ["C"]


@pytest.mark.parametrize(
    ("column", "into", "fault"),
    [
        ("id", "de", "--column: .* has no column 'id' of texts"),
        ("nothing", "de", "--column: .* has no column 'nothing' of texts"),
        ("text", "id", "--into: .* has id already"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(column: str, into: str, fault: str, file: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=fault):
        job_of(tmp_path, inputs=[str(file)], form="parquet", column=column, into=into).plan()


def test_of_two_columns_of_a_name_none_is_taken(tmp_path: Path) -> None:
    pq.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), tmp_path / "in.parquet")

    with pytest.raises(SettingsError, match="has no column 'text' of texts, or several"):
        job_of(tmp_path, inputs=[str(tmp_path / "in.parquet")], form="parquet").plan()


def test_bytes_that_are_no_text_are_an_error_of_their_row(tmp_path: Path) -> None:
    ends, bytes_ = pa.py_buffer(struct.pack("<3i", 0, 1, 3)), pa.py_buffer(b"a\xff\xfe")
    texts = pa.Array.from_buffers(pa.string(), 2, [None, ends, bytes_])
    pq.write_table(pa.table({"text": texts}), tmp_path / "in.parquet")
    job = job_of(tmp_path, inputs=[str(tmp_path / "in.parquet")], form="parquet")

    assert job.read(job.plan()[0])[1] == [Cell("a"), Cell(None, "the text is no UTF-8")]


def test_a_damaged_footer_or_row_group_is_named(file: Path, tmp_path: Path) -> None:
    job = job_of(tmp_path, inputs=[str(file)], form="parquet")
    whole = file.read_bytes()
    shards = job.plan()

    file.write_bytes(whole[:4] + bytes(each ^ 0x55 for each in whole[4:60]) + whole[60:])
    with pytest.raises(OSError, match=r"in\.parquet, row group 0: cannot be read: "):
        job.read(shards[0])
    file.write_bytes(whole[:-60] + bytes(each ^ 0x55 for each in whole[-60:-20]) + whole[-20:])
    with pytest.raises(SettingsError, match=r"in\.parquet: is no Parquet file: "):
        job.plan()


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path, form="parquet")

    with pytest.raises(SettingsError, match=r"in\.txt: is no Parquet file"):
        job.plan()
