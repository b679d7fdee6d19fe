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


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path, form="parquet")

    with pytest.raises(SettingsError, match=r"in\.txt: is no Parquet file"):
        job.plan()
