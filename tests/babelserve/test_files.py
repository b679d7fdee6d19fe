import gzip
import json
import os
from io import BufferedReader, BytesIO
from pathlib import Path

import pytest

from babelserve.files import Done, Output, UsageError, read_lines
from babelserve.lines import Line, read_line


def lines_of(*texts: str) -> list[Line]:
    return [read_line(f"{text}\n".encode()) for text in texts]


def opened(content: bytes) -> BufferedReader:
    return BufferedReader(BytesIO(content))


def write(output: Output, content: bytes, done: Done | None = None) -> None:
    file = output.open(done or Done())
    file.write(content)
    file.flush()


def test_plain_and_gzipped_lines_are_the_same() -> None:
    content = "eins\nzwei \u00fc\ndrei".encode()

    plain = list(read_lines(opened(content), "a"))

    assert [line.text for line in plain] == ["eins", "zwei \u00fc", "drei"]
    assert list(read_lines(opened(gzip.compress(content)), "a.gz")) == plain
    assert list(read_lines(opened(b""), "empty")) == []


@pytest.mark.parametrize("damage", [slice(0, -12), slice(0, 20)])
def test_damaged_gzip_says_so_after_what_can_be_read(damage: slice) -> None:
    packed = gzip.compress(b"".join(b"line %d\n" % number for number in range(1000)))

    with pytest.raises(UsageError, match=r"^a\.gz: is damaged gzip: "):
        list(read_lines(opened(packed[damage]), "a.gz"))


def test_an_output_has_its_name_once_it_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("older\n")
    output = Output(path)

    write(output, b"new\n")
    assert path.read_text() == "older\n"
    output.finish()

    assert path.read_text() == "new\n"
    assert not output.leave()
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_left_can_be_gone_on_with_from_its_last_whole_line(tmp_path: Path) -> None:
    (tmp_path / "out.txt.part").write_bytes(b"A\n\nC\nhal")
    output, lines = Output(tmp_path / "out.txt"), iter(lines_of("a", " ", "c", "d", "e"))

    done = output.skip_done(lines, as_json=False)
    write(output, b"D\nE\n", done)
    output.finish()

    assert done == Done(num_lines=3, num_output_bytes=5, num_input_bytes=6, num_failed=0)
    assert (tmp_path / "out.txt").read_bytes() == b"A\n\nC\nD\nE\n"


@pytest.mark.parametrize("left", [None, b"", b"torn"])
def test_what_has_left_no_whole_line_begins_anew(tmp_path: Path, left: bytes | None) -> None:
    output, lines = Output(tmp_path / "out.txt"), iter(lines_of("a"))
    if left is not None:
        output.part.write_bytes(left)

    assert output.skip_done(lines, as_json=False) == Done()
    write(output, b"A\n")
    output.finish()

    assert (tmp_path / "out.txt").read_bytes() == b"A\n"


def test_lines_that_had_failed_are_counted(tmp_path: Path) -> None:
    output = Output(tmp_path / "out.txt")
    output.part.write_bytes(b"A\n\n\n")

    assert output.skip_done(iter([*lines_of("a", "b"), read_line(b"\xff\n")]), as_json=False).num_failed == 2

    output.part.write_text(json.dumps({"text": "A"}) + "\n" + json.dumps({"text": "", "error": {}}) + "\n")
    assert output.skip_done(iter(lines_of("a", "b")), as_json=True).num_failed == 1


def test_what_another_job_has_left_is_refused(tmp_path: Path) -> None:
    output = Output(tmp_path / "out.txt")
    output.part.write_bytes(b"A\nB\n")

    with pytest.raises(UsageError, match=r"out\.txt\.part has more lines than the input"):
        output.skip_done(iter(lines_of("a")), as_json=False)
    with pytest.raises(UsageError, match="was written without --json"):
        output.skip_done(iter(lines_of("a", "b")), as_json=True)


def test_leaving_says_whether_there_is_something_to_go_on_with(tmp_path: Path) -> None:
    begun, empty = Output(tmp_path / "begun"), Output(tmp_path / "empty")
    write(begun, b"A\n")
    empty.open(Done())

    assert (begun.leave(), empty.leave(), Output(tmp_path / "never").leave()) == (True, False, False)
    assert [path.name for path in tmp_path.iterdir()] == ["begun.part"]


def test_what_is_no_regular_file_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output = Output(pipe)

    write(output, b"A\n")
    output.finish()

    assert os.read(reader, 10) == b"A\n"
    os.close(reader)
    assert not output.leave()


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    output = Output(tmp_path / "link")

    write(output, b"A\n")
    output.finish()

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"A\n"
