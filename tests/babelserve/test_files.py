import gzip
import json
import os
from collections.abc import Iterable
from io import BufferedReader, BytesIO
from pathlib import Path

import pytest

from babelserve.files import Done, Output, read_lines
from babelserve.lines import Line, read_line
from babelserve.outputs import UsageError


def lines_of(*texts: str) -> list[Line]:
    return [read_line(f"{text}\n".encode()) for text in texts]


def opened(content: bytes) -> BufferedReader:
    return BufferedReader(BytesIO(content))


def begin(output: Output, *texts: str, resume: bool = False, as_json: bool = False) -> Done:
    return output.open(iter(lines_of(*texts)), resume=resume, as_json=as_json)


def resumed(path: Path, written: bytes, lines: Iterable[Line], *, as_json: bool = False) -> Done:
    """What a job finds that goes on after such a `.part`."""
    path.with_name(path.name + ".part").write_bytes(written)
    output = Output(path)
    try:
        return output.open(iter(lines), resume=True, as_json=as_json)
    finally:
        output.leave()


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

    begin(output)
    output.file.write(b"new\n")
    assert path.read_text() == "older\n"
    output.finish()

    assert path.read_text() == "new\n"
    assert not output.leave()
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_left_can_be_gone_on_with_from_its_last_whole_line(tmp_path: Path) -> None:
    (tmp_path / "out.txt.part").write_bytes(b"A\n\nC\nhal")
    output, lines = Output(tmp_path / "out.txt"), iter(lines_of("a", " ", "c", "d", "e"))

    done = output.open(lines, resume=True, as_json=False)
    output.file.write(b"D\nE\n")
    output.finish()

    assert done == Done(num_lines=3, num_output_bytes=5, num_input_bytes=6, num_failed=0)
    assert [line.text for line in lines] == ["d", "e"]
    assert (tmp_path / "out.txt").read_bytes() == b"A\n\nC\nD\nE\n"


@pytest.mark.parametrize("left", [None, b"", b"torn"])
def test_what_has_left_no_whole_line_begins_anew(tmp_path: Path, left: bytes | None) -> None:
    output = Output(tmp_path / "out.txt")
    if left is not None:
        (tmp_path / "out.txt.part").write_bytes(left)

    assert begin(output, "a", resume=True) == Done()
    output.file.write(b"A\n")
    output.finish()

    assert (tmp_path / "out.txt").read_bytes() == b"A\n"


def test_without_resume_what_was_left_goes(tmp_path: Path) -> None:
    (tmp_path / "out.txt.part").write_bytes(b"A\nB\n")
    output = Output(tmp_path / "out.txt")

    assert begin(output, "a") == Done()
    output.finish()

    assert (tmp_path / "out.txt").read_bytes() == b""


def test_lines_that_had_failed_are_counted(tmp_path: Path) -> None:
    plain = resumed(tmp_path / "a", b"A\n\n\n", [*lines_of("a", "b"), read_line(b"\xff\n")])
    facts = [{"text": "A"}, {"text": "", "error": {}}]
    written = "".join(json.dumps(each) + "\n" for each in facts).encode()

    assert plain.num_failed == 2
    assert resumed(tmp_path / "b", written, lines_of("a", "b"), as_json=True).num_failed == 1


def test_another_job_with_more_lines_is_refused_and_stays(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"out\.part has more lines than the input"):
        resumed(tmp_path / "out", b"A\nB\n", lines_of("a"))
    assert (tmp_path / "out.part").read_bytes() == b"A\nB\n"


@pytest.mark.parametrize(
    "written",
    [
        b"A",
        b"5",
        b"null",
        b'"an error"',
        b'["error"]',
        b"{}",
        b'{"text": 0, "hash": "a", "translation": "A"}',
        b'{"text": ' + b"[" * 100_000,
        b'{"text": ' + b"9" * 5_000 + b"}",
        b"\xff",
    ],
)
def test_json_goes_on_after_json_only(tmp_path: Path, written: bytes) -> None:
    with pytest.raises(UsageError, match="was written without --json: go on without it, too"):
        resumed(tmp_path / "out", written + b"\n", lines_of("a"), as_json=True)


@pytest.mark.parametrize("extra", [{"model_version": "1"}, {"hash": "a", "translation": "A"}])
def test_lines_do_not_go_on_after_json(tmp_path: Path, extra: dict[str, str]) -> None:
    written = json.dumps({"text": "A", **extra}).encode() + b"\n"

    with pytest.raises(UsageError, match="was written with --json or --format: go on with it, too"):
        resumed(tmp_path / "out", written, lines_of("a"))
    assert resumed(tmp_path / "own", b'{"text": "A"}\n', lines_of('{"text": "a"}')).num_lines == 1


def test_leaving_says_whether_there_is_something_to_go_on_with(tmp_path: Path) -> None:
    begun, empty = Output(tmp_path / "begun"), Output(tmp_path / "empty")
    begin(begun)
    begun.file.write(b"A\n")
    begin(empty)

    assert (begun.leave(), empty.leave(), Output(tmp_path / "never").leave()) == (True, False, False)
    assert [path.name for path in tmp_path.iterdir()] == ["begun.part"]


def test_what_is_no_regular_file_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output = Output(pipe)

    begin(output)
    output.file.write(b"A\n")
    output.finish()

    assert os.read(reader, 10) == b"A\n"
    os.close(reader)
    assert not output.leave()


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    output = Output(tmp_path / "link")

    begin(output)
    output.file.write(b"A\n")
    output.finish()

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"A\n"


def test_a_file_has_one_job_at_a_time_until_it_has_its_name(tmp_path: Path) -> None:
    first, second = Output(tmp_path / "out"), Output(tmp_path / "out")
    begin(first)
    first.file.write(b"A\n")

    for resume in (False, True):
        with pytest.raises(UsageError, match=r"^another job writes .*out\.part: wait for it, or give another"):
            begin(second, resume=resume)
    assert not second.leave()
    first.finish()

    assert (tmp_path / "out").read_bytes() == b"A\n"
    begin(second)
    second.finish()
    assert (tmp_path / "out").read_bytes() == b""


def test_an_output_is_gzipped_if_its_name_says_so(tmp_path: Path) -> None:
    output = Output(tmp_path / "out.GZ")
    begin(output)
    output.file.write(b"A\n")
    assert output.leave()

    begin(output, "a", "b", resume=True)
    output.file.write(b"B\n")
    output.finish()

    assert gzip.decompress((tmp_path / "out.GZ").read_bytes()) == b"A\nB\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.GZ"]


def test_what_cannot_be_gzipped_stays_to_go_on_with(tmp_path: Path) -> None:
    output = Output(tmp_path / "out.gz")
    begin(output)
    output.file.write(b"A\n")
    (tmp_path / "out.gz").mkdir()

    with pytest.raises(OSError, match="directory"):
        output.finish()

    assert output.leave()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.gz", "out.gz.part"]


def test_what_others_put_in_the_place_of_the_part_is_left_to_them(tmp_path: Path) -> None:
    part = tmp_path / "out.part"
    for has_other in (False, True):
        output = Output(tmp_path / "out")
        begin(output)
        output.file.write(b"A\n")
        part.unlink()
        if has_other:
            part.write_text("other")

        with pytest.raises(UsageError, match=r"out\.part is no longer the file that this job writes: somebody has"):
            output.finish()
        assert not output.leave()

    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.part", "other")]
