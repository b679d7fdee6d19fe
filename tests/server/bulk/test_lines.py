import json
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from hypothesis import given
from hypothesis import strategies as st

from server.bulk import lines
from server.bulk.cell import Cell
from server.bulk.lines import Jsonl, LineFormat, Text, Tsv, joined, ranges, read_lines, sources

FILES = LocalFileSystem()


@given(content=st.text(alphabet="ab\n", max_size=60).map(str.encode), shard_bytes=st.integers(1, 20))
def test_every_line_is_in_one_shard_however_the_file_is_cut(
    content: bytes, shard_bytes: int, tmp_path_factory: Any
) -> None:
    file = tmp_path_factory.mktemp("lines") / "file"
    file.write_bytes(content)

    found = [read_lines(FILES, str(file), *part) for part in ranges(len(content), shard_bytes)]

    expected = content.removesuffix(b"\n").split(b"\n") if content else []
    assert [line for part in found for line in part] == expected


def test_a_line_that_is_too_long_is_one_row_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_ROW_BYTES", 1000)
    file = tmp_path / "file"
    file.write_bytes(b"first\n" + b"x" * 300_000 + b"\nlast")

    rows = [line for part in ranges(file.stat().st_size, 5_000) for line in read_lines(FILES, str(file), *part)]

    form = Tsv(1)
    cells = sources(form, rows)
    assert [cell.error for cell in cells] == ["", "the row is longer than 1000 bytes", ""]
    assert [cells[0].text, cells[2].text] == ["first", "last"]
    assert joined(form, rows, cells).split(b"\n")[1] == b"\t\tthe row is longer than 1000 bytes"


def test_a_file_that_is_one_line_is_read_in_time_that_grows_as_the_file_does(tmp_path: Path) -> None:
    counted: list[int] = []

    class Counting(LocalFileSystem):  # type: ignore[misc]
        def cat_file(self, path: str, start: int | None = None, end: int | None = None, **more: Any) -> bytes:
            data: bytes = super().cat_file(path, start=start, end=end, **more)
            counted.append(len(data))
            return data

    file = tmp_path / "file"
    file.write_bytes(b"x" * 2_000_000)
    for part in ranges(2_000_000, 10_000):
        read_lines(Counting(), str(file), *part)

    assert sum(counted) < 2 * 2_100_000


@pytest.mark.parametrize(
    ("form", "line", "source", "row"),
    [
        (Text(), b"Hello.\r", "Hello.", b"Hallo ."),
        (Tsv(2), b"7\tHello.\tx", "Hello.", b"7\tHello.\tx\tHallo .\t"),
        (
            Jsonl("text", "de"),
            b'{"id": 1e400, "text": "Hello."} ',
            "Hello.",
            b'{"id": 1e400, "text": "Hello.", "de": "Hallo\\t."}',
        ),
    ],
)
def test_a_row_stays_as_it_is_beside_its_translation(form: LineFormat, line: bytes, source: str, row: bytes) -> None:
    assert form.source(line) == Cell(source)
    assert form.translated(line, Cell("Hallo\t.")) == row


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"", "the row is no JSON object"),
        (b"[1]", "the row is no JSON object"),
        (b"[" * 100_000, "the row is no JSON object"),
        (b'{"text": "\xff"}', "the row is no JSON object"),
        (b'{"text": 7}', "'text' is no text in the row"),
        (b"{}", "'text' is no text in the row"),
        (b'{"text": "\\ud800"}', "the text is no valid Unicode"),
        (b'{"text": "a", "de": null}', "the row has 'de' already"),
    ],
)
def test_a_row_of_json_without_a_text_becomes_a_row_with_an_error(line: bytes, error: str) -> None:
    form = Jsonl("text", "de")
    cell = form.source(line)

    row = json.loads(form.translated(line, cell))

    assert cell == Cell(None, error)
    assert (row["de"], row["de_error"]) == (None, error)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b'{"text": "a", "de": "b", "de_error": "c"}', b'{"text": "a", "de": "b", "de_error": "c"}'),
        (b'{"text": "a", "de_error": "c"}', b'{"text": "a", "de_error": "c", "de": null}'),
    ],
)
def test_a_row_of_json_has_no_member_twice(line: bytes, row: bytes) -> None:
    form = Jsonl("text", "de")
    cell = form.source(line)

    assert cell.error.endswith("already")
    assert form.translated(line, cell) == row


@pytest.mark.parametrize(
    ("line", "error"), [(b"a", "the row has 1 columns, not 2"), (b"a\t\xff", "the text is no UTF-8")]
)
def test_a_row_of_tsv_without_a_text_becomes_a_row_with_an_error(line: bytes, error: str) -> None:
    assert Tsv(2).source(line) == Cell(None, error)
    assert Tsv(2).translated(line, Cell(None, error)) == line + b"\t\t" + error.encode()


def test_a_text_that_is_no_utf_8_becomes_an_empty_line() -> None:
    assert Text().source(b"\xff") == Cell(None, "the text is no UTF-8")
    assert joined(Text(), [b"\xff", b"a"], [Cell(None, "bad"), Cell("b\nc")]) == b"\nb c\n"
